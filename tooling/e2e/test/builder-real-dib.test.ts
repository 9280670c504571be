/**
 * The builder with diskimage-builder itself, which needs root and mounts the host's `/dev`. Runs if the environment
 * contains `NODEPOOL_TEST_DIB`.
 */

import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { zooKeeperForTests } from '@nodepool/dev-zookeeper';
import { configFileOf, Program, programPath, writeDaemonConfig, zooKeeperServers } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';

const FOLDER = join(__dirname, '..', 'logs', 'builder-real-dib');
const TEMPORARY = join(FOLDER, 'temporary');
const ELEMENT = join(FOLDER, 'elements', 'sleeper');
const LIMIT_MS = 300_000;

/** Copies a few programs of the host into the root file system. */
const ROOT = `#!/bin/bash
set -eu
mkdir -p $TARGET_ROOT/{bin,proc,dev,sys,tmp,etc,lib,root,var/log}
for name in bash sh sleep cat ls mkdir mktemp env dirname basename find sort grep head tail rm date cp sed awk xargs; do
  path=$(command -v $name)
  cp -L $path $TARGET_ROOT/bin/
  for library in $(ldd $path | grep -o '/[^ ]*'); do
    mkdir -p $TARGET_ROOT$(dirname $library)
    cp -Ln $library $TARGET_ROOT$library
  done
done
`;

function writeElement(): void {
  for (const phase of ['root.d', 'install.d']) mkdirSync(join(ELEMENT, phase), { recursive: true });
  writeFileSync(join(ELEMENT, 'element-provides'), 'operating-system\n');
  const scripts = { 'root.d/10-root': ROOT, 'install.d/50-sleep': '#!/bin/bash\necho SLEEPING\nsleep 3600\n' };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(ELEMENT, name), text);
    chmodSync(join(ELEMENT, name), 0o755);
  }
}

const itWithDib = process.env['NODEPOOL_TEST_DIB'] === undefined ? it.skip : it;

itWithDib('diskimage-builder leaves neither mounts nor files when its build exceeds the time limit', async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(TEMPORARY, { recursive: true });
  writeElement();
  const server = await zooKeeperForTests();
  const config = {
    'zookeeper-servers': zooKeeperServers(server.servers),
    'images-dir': join(FOLDER, 'images'),
    'build-log-dir': join(FOLDER, 'build-logs'),
    'elements-dir': join(FOLDER, 'elements'),
    diskimages: [
      {
        name: 'sleeper',
        formats: ['raw'],
        elements: ['sleeper'],
        'dib-cmd': 'disk-image-create -n',
        'build-timeout': 30,
        'env-vars': { TMPDIR: TEMPORARY },
      },
    ],
  };
  const target = { folder: FOLDER, name: 'builder', config };
  await writeDaemonConfig(target);
  const program = await Program.start({
    name: 'builder',
    command: 'unshare',
    args: ['--mount', process.execPath, programPath('nodepool-builder'), '-c', configFileOf(target)],
    logFile: join(FOLDER, 'builder.log'),
    cwd: FOLDER,
  });
  const mounts = (): number => readFileSync(`/proc/${program.pid}/mountinfo`, 'utf8').split(TEMPORARY).length - 1;
  try {
    await program.while('the build ends', LIMIT_MS, async (signal) => {
      while (mounts() === 0) await sleep(systemClock, 100, signal);
      while (!readFileSync(program.logFile, 'utf8').includes('An image could not be built')) {
        await sleep(systemClock, 100, signal);
      }
    });
    expect(mounts()).toBe(0);
    expect(readdirSync(TEMPORARY)).toEqual([]);
    const [log] = readdirSync(join(FOLDER, 'build-logs'));
    expect(readFileSync(join(FOLDER, 'build-logs', log ?? ''), 'utf8')).toContain('SLEEPING');
  } finally {
    await program.kill();
    await server.stop();
  }
});
