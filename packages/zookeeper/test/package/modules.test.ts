/** The compiled package, loaded and type-checked by programs of both module systems. */

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import * as source from '../../src/index.js';

const run = promisify(execFile);
const packageFolder = resolve(__dirname, '../..');
const workspace = resolve(packageFolder, '../..');
const tsc = join(workspace, 'node_modules/.bin/tsc');
const names = Object.keys(source).sort();

/** Creates the folder of a program, with the package in its `node_modules`. */
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'zookeeper-package-'));
  const installed = join(folder, 'node_modules/@nodepool/zookeeper');
  await mkdir(installed, { recursive: true });
  await cp(join(packageFolder, 'package.json'), join(installed, 'package.json'));
  const out = ['--outDir', join(installed, 'dist'), '--tsBuildInfoFile', join(folder, 'build-info')];
  await run(tsc, ['-p', packageFolder, ...out]);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function output(file: string, text: string): Promise<unknown> {
  await writeFile(join(folder, file), text);
  const { stdout } = await run(process.execPath, [file], { cwd: folder });
  return JSON.parse(stdout);
}

const PROGRAM = `
  const client = connect({ servers: 'localhost:1', operationTimeoutMs: 1 });
  client.get('/').catch((error) => {
    console.log(JSON.stringify([isZooKeeperError(error, 'timeout'), error instanceof ZooKeeperError, Permission.all]));
    return client.close();
  });
`;

describe('the package', () => {
  it('exports every name to an ES module', async () => {
    const text = `import { ${names.join(', ')} } from '@nodepool/zookeeper';
      console.log(JSON.stringify([${names.map((name) => `typeof ${name}`).join(', ')}]));`;
    const types = Object.values(
      Object.fromEntries(names.map((name) => [name, typeof source[name as keyof typeof source]])),
    );
    expect(await output('names.mjs', text)).toEqual(types);
  });

  it('works in an ES module', async () => {
    const text = `import { connect, isZooKeeperError, Permission, ZooKeeperError } from '@nodepool/zookeeper';${PROGRAM}`;
    expect(await output('program.mjs', text)).toEqual([true, true, 31]);
  });

  it('works in a CommonJS program', async () => {
    const text = `const { connect, isZooKeeperError, Permission, ZooKeeperError } = require('@nodepool/zookeeper');${PROGRAM}`;
    expect(await output('program.cjs', text)).toEqual([true, true, 31]);
  });

  it('is loaded once for both module systems in a process', async () => {
    const text = `import { createRequire } from 'node:module';
      import { ZooKeeperError } from '@nodepool/zookeeper';
      const required = createRequire(import.meta.url)('@nodepool/zookeeper');
      console.log(JSON.stringify(required.ZooKeeperError === ZooKeeperError));`;
    expect(await output('both.mjs', text)).toBe(true);
  });

  it('has types for both module systems', async () => {
    const typed = `const zk: ZooKeeper = connect({ servers: 'localhost' });
      export const received: Promise<Stat | undefined> = zk.exists('/', { watch: ({ type }) => type satisfies string });
      // @ts-expect-error -- a name that no mode has
      export const wrong = zk.create('/', undefined, { mode: 'nonsense' });`;
    await Promise.all([
      writeFile(
        join(folder, 'typed.mts'),
        `import { connect, type Stat, type ZooKeeper } from '@nodepool/zookeeper';\n${typed}`,
      ),
      writeFile(
        join(folder, 'typed.cts'),
        `import { connect, type Stat, type ZooKeeper } from '@nodepool/zookeeper';\n${typed}`,
      ),
      writeFile(
        join(folder, 'tsconfig.json'),
        JSON.stringify({
          compilerOptions: {
            ...{ module: 'nodenext', target: 'es2023', strict: true, noEmit: true, skipLibCheck: false },
            ...{ typeRoots: [join(workspace, 'node_modules/@types')], types: ['node'] },
          },
          files: ['typed.mts', 'typed.cts'],
        }),
      ),
    ]);
    await expect(run(tsc, ['-p', folder])).resolves.toMatchObject({ stdout: '' });
  });
});
