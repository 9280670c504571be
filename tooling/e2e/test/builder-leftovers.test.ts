/** Killed builders: the built program with a build that mounts file systems, in a mount namespace of the test. */

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { FAKE_DIB_COMMAND } from '@nodepool/fake-dib';
import { configFileOf, Program, programPath, writeDaemonConfig, zooKeeperServers } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';
import { signalIfThere } from '@nodepool/core/testing';

const FOLDER = join(__dirname, '..', 'logs', 'builder-leftovers');
const IMAGES = join(FOLDER, 'images');
const TEMPORARY = join(FOLDER, 'temporary');
/** A folder of the host, which the build mounts into its root file system. */
const CACHE = join(FOLDER, 'cache');
const LIMIT_MS = 120_000;
/** Creates a user namespace, in which its user may mount. */
const UNSHARE = ['--user', '--map-root-user', '--mount'];

const mountsAreAllowed = ((): boolean => {
  try {
    execFileSync('unshare', [...UNSHARE, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();
const title = mountsAreAllowed ? '' : ' (skipped: this machine allows no mounts in a user namespace)';
const itWithMounts = mountsAreAllowed ? it : it.skip;

let server: ZooKeeperForTests;
/** Holds the namespace while builders die. */
let holder: ChildProcess;
const programs: Program[] = [];

beforeEach(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  for (const folder of [IMAGES, TEMPORARY, CACHE]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(CACHE, 'package.deb'), 'of the host');
  // Short ticks, so that sessions of killed processes expire soon.
  server = await zooKeeperForTests({ tickTime: 500 });
  holder = spawn('unshare', [...UNSHARE, 'sleep', 'infinity'], { stdio: 'ignore' });
  while (readIfThere(`/proc/${holder.pid ?? 0}/comm`) !== 'sleep\n') await sleep(systemClock, 20);
});
afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
  for (const pid of processesOfBuilds()) signalIfThere(Number(pid));
  holder.kill('SIGKILL');
  await server.stop();
});

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

const mountPoints = (): readonly string[] =>
  readIfThere(`/proc/${holder.pid ?? 0}/mountinfo`)
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(FOLDER));

/** Returns the ids of the processes of this test's builds, zombies excluded. */
function processesOfBuilds(): readonly string[] {
  return readdirSync('/proc').filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      readIfThere(`/proc/${pid}/environ`).includes(`DIB_IMAGE_FILENAME=${FOLDER}/`) &&
      !readIfThere(`/proc/${pid}/stat`).includes(') Z '),
  );
}

async function builder(name: string, images: string, env: Readonly<Record<string, string>>): Promise<Program> {
  const config = {
    'zookeeper-servers': zooKeeperServers(server.servers),
    'zookeeper-timeout': 4,
    'images-dir': images,
    'build-log-dir': join(FOLDER, 'build-logs'),
    diskimages: [
      {
        name,
        formats: ['qcow2'],
        elements: ['debian-minimal'],
        'dib-cmd': FAKE_DIB_COMMAND,
        'env-vars': { TMPDIR: TEMPORARY, FAKE_DIB_CACHE: CACHE, ...env },
      },
    ],
  };
  const target = { folder: FOLDER, name, config };
  await writeDaemonConfig(target);
  const program = await Program.start({
    name,
    command: 'nsenter',
    args: [
      ...['-t', String(holder.pid), '--user', '--mount', '--preserve-credentials', '--'],
      ...[process.execPath, programPath('nodepool-builder'), '-c', configFileOf(target)],
    ],
    logFile: join(FOLDER, `${name}.log`),
    cwd: FOLDER,
  });
  programs.push(program);
  return program;
}

async function until(program: Program, what: string, holds: () => boolean): Promise<void> {
  await program.while(what, LIMIT_MS, async (signal) => {
    while (!holds()) await sleep(systemClock, 50, signal);
  });
}

const logOf = (program: Program): string => readFileSync(program.logFile, 'utf8');

itWithMounts(
  `a builder removes what a build has left whose processes were all killed, and nothing else${title}`,
  async () => {
    // Two look-alikes, and the running build of another builder.
    const own = 'dib_build.AbCdEfGh';
    const other = `nodepool-${'0'.repeat(32)}`;
    for (const name of [own, other]) mkdirSync(join(TEMPORARY, name));
    const neighbour = await builder('fedora', join(FOLDER, 'other-images'), { FAKE_DIB: 'chroot' });
    await until(neighbour, 'it mounts', () => mountPoints().length === 4);
    const untouched = mountPoints();
    const remaining = readdirSync(TEMPORARY);

    const killed = await builder('debian', IMAGES, { FAKE_DIB: 'chroot' });
    await until(killed, 'it mounts', () => mountPoints().length === 8);
    // All at once, as systemd ends the processes of a service.
    killed.signal('SIGSTOP');
    for (const pid of processesOfBuilds()) {
      if (readIfThere(`/proc/${pid}/environ`).includes('DIB_IMAGE_NAME=debian')) signalIfThere(Number(pid));
    }
    await killed.kill();
    expect(mountPoints()).toHaveLength(8);

    const next = await builder('debian', IMAGES, { FAKE_DIB: 'works' });
    await until(next, 'it cleans up', () => readdirSync(TEMPORARY).length === remaining.length);
    await until(next, 'it builds', () => logOf(next).includes('The image is built'));
    expect(mountPoints()).toEqual(untouched);
    expect(readdirSync(TEMPORARY).sort()).toEqual(remaining.sort());
    expect(readFileSync(join(CACHE, 'package.deb'), 'utf8')).toBe('of the host');
    expect(readdirSync(join(IMAGES, 'builds-in-progress'))).toEqual([]);
    expect(logOf(next)).toContain('Removed the temporary files of a build that was killed');
  },
);

itWithMounts(`a build cleans up after itself although its builder was killed${title}`, async () => {
  const killed = await builder('debian', IMAGES, { FAKE_DIB: 'chroot' });
  await until(killed, 'it mounts', () => mountPoints().length === 4);
  await killed.kill();
  while (processesOfBuilds().length > 0) await sleep(systemClock, 50);
  expect(mountPoints()).toEqual([]);
  const [folder] = readdirSync(TEMPORARY);
  expect(readdirSync(join(TEMPORARY, folder ?? ''))).toEqual([]);
});

itWithMounts(`a builder that starts while a build cleans up waits for it, and ends nothing twice${title}`, async () => {
  const killed = await builder('debian', IMAGES, { FAKE_DIB: 'chroot', FAKE_DIB_CLEANUP_SECONDS: '8' });
  await until(killed, 'it mounts', () => mountPoints().length === 4);
  await killed.kill();
  const next = await builder('debian', IMAGES, { FAKE_DIB: 'works' });
  await until(next, 'it builds', () => logOf(next).includes('The image is built'));
  expect(mountPoints()).toEqual([]);
  expect(readdirSync(TEMPORARY)).toEqual([]);
});
