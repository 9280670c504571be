/** Builds the program in `test/go-client` with a Go toolchain and the sources of GitHub's client. */

import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Folder of Debian's packages of Go libraries. */
const PACKAGED = process.env['GO_LIBRARIES'] ?? '/usr/share/gocode/src';
/** Libraries of the client, with their folders in Debian's packages. */
const LIBRARIES = {
  'github.com/golang-jwt/jwt/v4': 'github.com/golang-jwt/jwt',
  'github.com/google/uuid': 'github.com/google/uuid',
  'github.com/hashicorp/go-cleanhttp': 'github.com/hashicorp/go-cleanhttp',
  'github.com/hashicorp/go-retryablehttp': 'github.com/hashicorp/go-retryablehttp',
};
const GO = process.env['GO'] ?? 'go';
/** Folder with the sources of github.com/actions/scaleset. */
const CLIENT = process.env['GITHUB_SCALESET'] ?? '';
/** First minor version of Go 1 with all that the program uses. */
const NEEDED_GO = 25;

/** Returns the reason why the program cannot be built here, or undefined if it can. */
export function missingForGo(): string | undefined {
  if (CLIENT === '') return 'GITHUB_SCALESET does not name a folder with the sources of actions/scaleset';
  const { status, stdout } = spawnSync(GO, ['version'], { encoding: 'utf8' });
  const minor = Number(/go1\.(\d+)/.exec(status === 0 ? stdout : '')?.[1] ?? 0);
  return minor < NEEDED_GO ? `Go 1.${NEEDED_GO} or later is missing` : undefined;
}

/** Builds the program in a folder and returns its path. */
export async function buildGoClient(folder: string): Promise<string> {
  const versions = await readFile(join(CLIENT, 'go.mod'), 'utf8');
  const required = Object.keys(LIBRARIES).map((name) => {
    const version = new RegExp(`${name} (v\\S+)`).exec(versions)?.[1] ?? 'v0.0.0';
    return `require ${name} ${version}`;
  });
  const replaced = Object.entries(LIBRARIES).flatMap(([name, path]) => {
    const source = join(PACKAGED, path);
    return existsSync(source) ? [`replace ${name} => ${source}`] : [];
  });
  // A library's own tests require this one; an empty module takes its place.
  const unused = 'github.com/hashicorp/go-hclog';
  if (replaced.length > 0) {
    await mkdir(join(folder, 'unused'));
    await writeFile(join(folder, 'unused', 'go.mod'), `module ${unused}\n`);
    replaced.push(`replace ${unused} => ./unused`);
  }
  const own = ['module client', `go 1.${NEEDED_GO}`, 'require github.com/actions/scaleset v0.0.0'];
  const lines = [...own, `replace github.com/actions/scaleset => ${CLIENT}`, ...required, ...replaced];
  await writeFile(join(folder, 'go.mod'), `${lines.join('\n')}\n`);
  await copyFile(join(__dirname, '..', 'go-client', 'main.go'), join(folder, 'main.go'));
  await copyFile(join(CLIENT, 'go.sum'), join(folder, 'go.sum'));
  const program = join(folder, 'client');
  const env = { ...process.env, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' };
  await promisify(execFile)(GO, ['build', '-o', program, '.'], { cwd: folder, env });
  return program;
}
