/**
 * Follows "A first evening" of docs/deploying.md with podman-compose in the place of docker compose, and looks at the
 * node from a second terminal.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { isJsonObject, stringAt, type JsonObject } from '@nodepool/core';
import type { Podman } from './podman.js';

const MARKED = /<!-- executed by tooling\/containers\/src\/evening\.ts -->\s+```sh\n(.*?)```/s;
const COMMAND = /^docker compose (.+?)(?: +#.*)?$/;
const PROJECT = 'deploy';
/** Building both images from nothing (ms). */
const UP_TIMEOUT_MS = 3_600_000;
const HEALTHY_TIMEOUT_MS = 180_000;
const NODE_TIMEOUT_MS = 180_000;
const DOWN_TIMEOUT_MS = 300_000;
const INTERRUPT = '\u0003';

/** The images that take the place of those of a registry. */
export interface Images {
  readonly zooKeeper: string;
  /** Base image of the Dockerfile. */
  readonly node: string;
}

interface Shown {
  readonly folder: string;
  readonly up: readonly string[];
  readonly request: readonly string[];
  readonly down: readonly string[];
}

/** Reads the commands of the page. Rejects if it shows other ones than this file runs. */
async function shownCommands(root: string): Promise<Shown> {
  const page = await readFile(join(root, 'docs', 'deploying.md'), 'utf8');
  const lines = (MARKED.exec(page)?.[1] ?? '').trim().split('\n');
  const folder = /^cd (\S+)$/.exec(lines[0] ?? '')?.[1];
  const commands = lines.slice(1).map((line) => COMMAND.exec(line)?.[1]?.split(' ') ?? []);
  const [up = [], request = [], down = [], ...others] = commands;
  const isKnown = up[0] === 'up' && request[0] === 'run' && request.includes('request') && down[0] === 'down';
  if (folder === undefined || !isKnown || others.length > 0) {
    throw new Error(`docs/deploying.md shows other commands than expected: ${lines.join('; ')}`);
  }
  return { folder: join(root, folder), up, request, down };
}

/**
 * Follows the page, and calls `look` while the launcher runs, with the name of the network and of the services' folder.
 * Resolves with the problems.
 */
export async function followEvening(
  podman: Podman,
  { root, scratch, images }: { readonly root: string; readonly scratch: string; readonly images: Images },
  say: (line: string) => void,
  look: (network: string, site: string) => Promise<string[]>,
): Promise<string[]> {
  const shown = await shownCommands(root);
  const replacements = join(scratch, 'images.yaml');
  const build = { args: { NODE_IMAGE: images.node } };
  const services = { zookeeper: { image: images.zooKeeper }, launcher: { build }, cli: { build } };
  await writeFile(replacements, JSON.stringify({ services }));
  const compose = (args: readonly string[]): string[] => ['-f', 'compose.yaml', '-f', replacements, ...args];
  const run = (args: readonly string[], timeoutMs: number, cleanup = false): Promise<string> =>
    podman.run(compose(args), { program: 'podman-compose', cwd: shown.folder, timeoutMs, cleanup });
  const nodes = async (): Promise<JsonObject[]> =>
    rowsOf(await run(['run', '--rm', '-T', 'cli', 'list', '--format', 'json'], NODE_TIMEOUT_MS));
  const problems: string[] = [];
  await requirePort(
    Number(/127\.0\.0\.1:(\d+):/.exec(await readFile(join(shown.folder, 'compose.yaml'), 'utf8'))?.[1]),
  );
  try {
    await run(shown.up, UP_TIMEOUT_MS);
    say('the services run; waiting for their health checks');
    for (const service of ['zookeeper', 'launcher'])
      await podman.healthy(`${PROJECT}_${service}_1`, HEALTHY_TIMEOUT_MS);
    say('both are healthy; requesting a node');
    const request = new Terminal(podman, 'podman-compose', compose(shown.request), shown.folder);
    try {
      const used = await podman.until('a node in use', NODE_TIMEOUT_MS, async () =>
        (await nodes()).find(({ state }) => state === 'in-use'),
      );
      const id = stringAt(used, 'id') ?? '';
      say(`node ${id} is in use: ${JSON.stringify(used)}`);
      await podman.until('the printed node', NODE_TIMEOUT_MS, async () => await Promise.resolve(request.printed(id)));
      request.type(INTERRUPT);
      await request.ended;
      await podman.until('the deletion of the node', NODE_TIMEOUT_MS, async () =>
        (await nodes()).some((node) => node['id'] === id) ? undefined : true,
      );
      say(`node ${id} is deleted after Ctrl-C`);
    } finally {
      await request.stop();
    }
    const examined = await run(['run', '--rm', '-T', 'cli', 'doctor'], NODE_TIMEOUT_MS);
    say(`nodepool doctor: ${[...examined.matchAll(/^ok /gm)].length} lines are ok`);
    problems.push(...[...examined.matchAll(/^error .*$/gm)].map(([line]) => `nodepool doctor: ${line}`));
    if (!/^ok +problems: /m.test(examined)) problems.push(`nodepool doctor is not content: ${examined}`);
    problems.push(...(await look(`${PROJECT}_default`, join(shown.folder, 'site'))));
  } finally {
    await run(shown.down, DOWN_TIMEOUT_MS, true);
  }
  const left = await podman.run(['ps', '--all', '--filter', `name=^${PROJECT}_`, '--format', '{{.Names}}']);
  const volumes = await podman.run(['volume', 'ls', '--filter', `name=^${PROJECT}_`, '--format', '{{.Name}}']);
  if (left.trim() !== '' || volumes.trim() !== '') problems.push(`"down" left ${left} ${volumes}`);
  return problems;
}

/** Rejects if another program uses the port, since podman-compose only prints that a service has not started. */
async function requirePort(port: number): Promise<void> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening').catch((cause: unknown) => {
    throw new Error(`the compose file needs port ${port} of this machine`, { cause });
  });
  server.close();
  await once(server, 'close');
}

/** podman-compose prints its own commands before and after the output of the program. */
function rowsOf(output: string): JsonObject[] {
  const [text = '[]'] = /^\[\n.*?^\]$|^\[\]$/ms.exec(output) ?? [];
  const rows: unknown = JSON.parse(text);
  return Array.isArray(rows) ? rows.filter(isJsonObject) : [];
}

/** A command in a terminal of its own, in which a person types. */
class Terminal {
  readonly ended: Promise<void>;
  private readonly child;
  private output = '';

  constructor(podman: Podman, program: string, args: readonly string[], cwd: string) {
    const line = [program, ...args].map((word) => `'${word}'`).join(' ');
    this.child = spawn('script', ['--quiet', '--flush', '--command', line, '/dev/null'], { env: podman.env, cwd });
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    this.ended = new Promise((resolve, reject) => {
      this.child.once('exit', () => resolve());
      this.child.once('error', reject);
    });
  }

  /** Returns true if the command has printed this word. */
  printed(word: string): true | undefined {
    return this.output.includes(word) ? true : undefined;
  }

  type(text: string): void {
    this.child.stdin.write(text);
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null) this.child.kill('SIGTERM');
    await this.ended;
  }
}
