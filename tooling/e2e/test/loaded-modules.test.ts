/** Programs load only what they need: the files that real processes have loaded when they end. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { exampleConfig, labelsOffered, programPath, startLauncher } from '@nodepool/harness';
import { connect } from '@nodepool/zookeeper';

const RECORDER = join(__dirname, 'loaded-modules.cjs');
const DEADLINE_MS = 120_000;

let folder: string;
let zooKeeper: ZooKeeperForTests;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-loaded-'));
  zooKeeper = await zooKeeperForTests();
});
afterAll(async () => {
  await zooKeeper.stop();
  rmSync(folder, { recursive: true });
});

/**
 * Returns the packages and bundled libraries with files in the list. The functions that compiled schemas call do not
 * count as the compiler of schemas, and the set-up of a process, which loads nothing else, not as the daemons' package.
 */
function packagesIn(file: string): ReadonlySet<string> {
  const names = readFileSync(file, 'utf8')
    .split('\n')
    .filter((path) => !path.includes('/ajv/dist/runtime/') && !path.endsWith('/daemon/dist/process/process-setup.js'))
    .map((path) => {
      const bundled = /\/dist\/vendor\/([^/]+)\.cjs$/.exec(path)?.[1];
      const library = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
      return bundled ?? library ?? /\/packages\/([^/]+)\//.exec(path)?.[1] ?? path;
    });
  return new Set(names);
}

function writeConfig(): string {
  const file = join(folder, 'nodepool.yaml');
  const config = exampleConfig({ zooKeeper: { servers: zooKeeper.servers }, webappPort: 8005, labels: ['small'] });
  writeFileSync(file, JSON.stringify(config));
  return file;
}

it('nodepool list loads no ssh, logging, web server, schema compiler or driver', async () => {
  const file = join(folder, 'list.txt');
  const env = { ...process.env, LOADED_MODULES_FILE: file };
  const args = ['--require', RECORDER, programPath('nodepool'), '-c', writeConfig(), 'list'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toContain('Server ID');
  const loaded = packagesIn(file);
  expect([...loaded]).toEqual(expect.arrayContaining(['config', 'core', 'store', 'yaml', 'zookeeper']));
  const unneeded = ['ajv', 'daemon', 'driver-example', 'fastify', 'launcher', 'plan', 'prom-client', 'ssh2', 'winston'];
  expect(unneeded.filter((name) => loaded.has(name))).toEqual([]);
});

it('nodepool-gitlab, which GitLab Runner starts for each stage of a job, loads no ZooKeeper client', async () => {
  const file = join(folder, 'gitlab.txt');
  const env = { ...process.env, LOADED_MODULES_FILE: file };
  await promisify(execFile)(process.execPath, ['--require', RECORDER, programPath('nodepool-gitlab'), 'config'], {
    env,
  });
  const loaded = packagesIn(file);
  expect([...loaded]).toEqual(expect.arrayContaining(['cli', 'core', 'requestor']));
  expect(['store', 'zookeeper', 'config', 'yaml', 'ajv'].filter((name) => loaded.has(name))).toEqual([]);
});

it('a launcher without a web endpoint loads no web server and no metrics for it, and no ssh before a login', async () => {
  const file = join(folder, 'launcher.txt');
  const client = connect({ servers: zooKeeper.servers });
  const launcher = await startLauncher({
    folder,
    config: exampleConfig({ zooKeeper: { servers: zooKeeper.servers }, webappPort: 8005, labels: ['small'] }),
    args: ['--no-webapp'],
    nodeArgs: ['--require', RECORDER],
    env: { LOADED_MODULES_FILE: file },
  });
  try {
    await launcher.while('offers its label', DEADLINE_MS, (signal) => labelsOffered(client, ['small'], signal));
  } finally {
    await launcher.stop();
    await client.close();
  }
  const loaded = packagesIn(file);
  expect([...loaded]).toEqual(expect.arrayContaining(['daemon', 'driver-example', 'launcher']));
  expect(['fastify', 'prom-client', 'ssh2'].filter((name) => loaded.has(name))).toEqual([]);
});
