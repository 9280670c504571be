/** Builds as real processes, and their complete termination. */

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, systemClock, type LogFields, type Logger } from '@nodepool/core';
import { FAKE_DIB_COMMAND, type FakeDibMode } from '@nodepool/fake-dib';
import { VirtualClock } from '@nodepool/core/testing';
import { BuildFailedError, DibProcesses, ImagesDir, type DiskImageJob } from '../src/index.js';
import { dibCommand } from '../src/dib-command.js';
import { eventually, groupOf, processesWith } from './support/processes.js';
import { diskImage } from './support/world.js';

const ID = '0123456789abcdef0123456789abcdef';
const BUILD = { image: 'debian', id: ID };

let images: string;
let logs: string;
let temporary: string;
let files: ImagesDir;
beforeEach(async () => {
  images = await mkdtemp(join(tmpdir(), 'nodepool-images-'));
  logs = await mkdtemp(join(tmpdir(), 'nodepool-logs-'));
  temporary = await mkdtemp(join(tmpdir(), 'nodepool-temporary-'));
  files = new ImagesDir(images);
});
afterEach(async () => {
  expect([await readdir(temporary), await readdir(join(images, 'builds-in-progress')).catch(() => [])]).toEqual([
    [],
    [],
  ]);
  await rm(temporary, { recursive: true });
  await rm(images, { recursive: true });
  await rm(logs, { recursive: true });
});

function job(mode: FakeDibMode, more: Partial<DiskImageJob> = {}): DiskImageJob {
  const image = diskImage('debian', {
    dibCmd: FAKE_DIB_COMMAND,
    release: '12.0',
    envVars: { FAKE_DIB: mode, TMPDIR: temporary },
  });
  const output = files.basePath(BUILD);
  const command = dibCommand({ image, formats: ['qcow2', 'raw'], elementsDir: '/elements', output });
  const signal = new AbortController().signal;
  return { image: 'debian', build: ID, ...command, timeoutMs: 60_000, signal, log: silentLogger, ...more };
}

const dib = (retention = 7): DibProcesses => new DibProcesses(systemClock, images, () => ({ folder: logs, retention }));

const logText = (): Promise<string> => readFile(dib().logFile(BUILD), 'utf8');

/** Returns the processes of this build, which have its path in their environment. */
const processesOfBuild = (): Promise<string[]> => processesWith(`DIB_IMAGE_FILENAME=${images}`);

const noProcessesLeft = (): Promise<void> => eventually(async () => (await processesOfBuild()).length === 0);

async function failureOf(work: Promise<unknown>): Promise<BuildFailedError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof BuildFailedError) return error;
  throw new Error(`expected a BuildFailedError, not ${String(error)}`);
}

describe('a successful build', () => {
  it('leaves its images, its environment and output in its log, and the exit code at the end', async () => {
    await dib().create(job('works'));
    const made = await files.complete(BUILD, ['qcow2', 'raw'], new AbortController().signal);
    expect(made.map(({ format }) => format)).toEqual(['qcow2', 'raw']);
    expect(await readdir(logs)).toEqual([`debian-${ID}.log`]);
    const text = await logText();
    expect(text).toContain(
      `DIB_RELEASE=12.0 DIB_IMAGE_NAME=debian DIB_IMAGE_FILENAME=${files.basePath(BUILD)} ELEMENTS_PATH=/elements`,
    );
    expect(text).toMatch(/Exit code: 0\n$/);
  });

  it('does not wait for processes that it leaves, which are stopped', async () => {
    await dib().create(job('lingers'));
    await noProcessesLeft();
  });

  it('keeps the configured number of newest logs of the image, and those of others', async () => {
    const old = ['1', '2', '3'].map((digit) => `debian-${digit.repeat(32)}.log`);
    const others = [`debian-arm64-${ID}.log`, 'debian-notes.log'];
    for (const name of [...old, ...others]) await writeFile(join(logs, name), '');
    await dib(1).create(job('works'));
    expect((await readdir(logs)).sort()).toEqual([`debian-${ID}.log`, ...others].sort());
    await writeFile(join(logs, old[0] ?? ''), '');
    await dib(-1).create(job('works'));
    expect(await readdir(logs)).toHaveLength(4);
  });

  it('keeps its own log if no others are kept', async () => {
    await writeFile(join(logs, `debian-${'1'.repeat(32)}.log`), '');
    await dib(0).create(job('works'));
    expect(await readdir(logs)).toEqual([`debian-${ID}.log`]);
  });

  it('continues without a log where that cannot be written', async () => {
    const warnings: string[] = [];
    const log: Logger = { ...silentLogger, with: () => log, warn: (message) => void warnings.push(message) };
    const nowhere = new DibProcesses(systemClock, images, () => ({ folder: '/dev/null/logs', retention: 7 }));
    await nowhere.create(job('works', { log }));
    expect(warnings).toContain('The log of the build cannot be written; the build continues without it');
    expect(await files.find(BUILD, 'raw')).toBeDefined();
  });
});

describe('an unsuccessful build', () => {
  it('is reported with its status, its last line and the path of its log', async () => {
    const failure = await failureOf(dib().create(job('fails')));
    expect(failure).toMatchObject({ failure: 'exit', exitCode: 100 });
    expect(failure.message).toContain('E: Unable to locate package linux-image');
    expect(failure.message).toContain(`debian-${ID}.log`);
    expect(await logText()).toMatch(/Exit code: 100\n$/);
  });

  it('is reported with a remedy when it cannot be started', async () => {
    const failure = await failureOf(dib().create(job('works', { command: '/usr/bin/no-such-command' })));
    expect(failure.failure).toBe('start');
    expect(failure.message).toContain('dib-cmd');
  });

  it('is stopped with all its processes when it takes too long', async () => {
    const clock = new VirtualClock();
    const processes = new DibProcesses(clock, images, () => ({ folder: logs, retention: 7 }));
    const failing = failureOf(processes.create(job('hangs', { timeoutMs: 1000 })));
    await eventually(async () => (await logText().catch(() => '')).includes('sleep'));
    await clock.advance(1000);
    expect((await during(clock, failing)).failure).toBe('timeout');
    await noProcessesLeft();
    expect(await logText()).toContain('Ended: the build took longer than build-timeout (1 s)');
  });

  it('is ended by a process of another group if the builder dies, because sudo ignores signals of its own', async () => {
    const stop = new AbortController();
    const failing = dib()
      .create(job('hangs', { signal: stop.signal }))
      .catch((error: unknown) => error);
    await eventually(async () => (await logText().catch(() => '')).includes('sleep'));
    await eventually(async () => new Set(await Promise.all((await processesOfBuild()).map(groupOf))).size === 3);
    stop.abort(new Error('stopped'));
    await failing;
    await noProcessesLeft();
  });

  it('cleans up after SIGTERM, which its output filter does not get, in its own time', async () => {
    const stop = new AbortController();
    const failing = dib()
      .create(job('chroot', { signal: stop.signal }))
      .catch((error: unknown) => error);
    await eventually(async () => (await logText().catch(() => '')).includes('In the chroot'));
    stop.abort(new Error('stopped'));
    expect(await failing).toEqual(new Error('stopped'));
    expect(await logText()).toContain('filter | Cleaned up');
    await noProcessesLeft();
  });

  it('leaves its temporary files in a folder that is deleted, and deletes nothing beside it', async () => {
    await writeFile(join(temporary, 'nodepool-notes'), '');
    await dib()
      .create(job('chroot', { env: { FAKE_DIB: 'chroot', FAKE_DIB_DIES: 'yes', TMP_DIR: temporary } }))
      .catch(() => undefined);
    expect(await logText()).toContain(`${temporary}/nodepool-${ID}/dib_build.`);
    expect(await readdir(temporary)).toEqual(['nodepool-notes']);
    await rm(join(temporary, 'nodepool-notes'));
  });

  it('is killed after some time when it ignores the first signal', async () => {
    const clock = new VirtualClock();
    const processes = new DibProcesses(clock, images, () => ({ folder: logs, retention: 7 }));
    const stop = new AbortController();
    const failing = processes.create(job('stubborn', { signal: stop.signal })).catch((error: unknown) => error);
    await eventually(async () => (await processesOfBuild()).length >= 3);
    stop.abort(new Error('stopped'));
    await nextEvents();
    await clock.advance(119_000);
    expect(await processesOfBuild()).not.toEqual([]);
    expect(await during(clock, failing)).toEqual(new Error('stopped'));
    await noProcessesLeft();
  });

  it.each([
    ['no-file', 'did not create'],
    ['empty', 'is empty'],
    ['partial', 'did not create'],
  ] as const)('is reported when it succeeds with "%s"', async (mode, words) => {
    await dib().create(job(mode));
    const failure = await failureOf(files.complete(BUILD, ['qcow2', 'raw'], new AbortController().signal));
    expect(failure).toMatchObject({ failure: 'incomplete' });
    expect(failure.message).toContain(words);
  });
});

describe('progress', () => {
  it('is logged regularly, with the last line', async () => {
    const clock = new VirtualClock();
    const told: LogFields[] = [];
    const log: Logger = {
      ...silentLogger,
      with: () => log,
      info: (message, fields = {}) => {
        if (message === 'The build is still running') told.push(fields);
      },
    };
    const processes = new DibProcesses(clock, images, () => ({ folder: logs, retention: 7 }));
    const stop = new AbortController();
    const failing = processes
      .create(job('hangs', { log, signal: stop.signal, timeoutMs: 3_600_000 }))
      .catch(() => undefined);
    await eventually(async () => (await logText().catch(() => '')).includes('+ wait'));
    await clock.advance(60_000);
    expect(told).toEqual([
      expect.objectContaining({ seconds: 60, last_line: expect.stringContaining('DIB_IMAGE_NAME=debian') }),
    ]);
    stop.abort(new Error('enough'));
    await during(clock, failing);
  });
});

/** Advances the clock until the work is done, since the kernel ends processes in its own time. */
async function during<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let settled = false;
  const done = work.finally(() => (settled = true));
  await eventually(async () => {
    await clock.advance(1000);
    return settled;
  });
  return done;
}

/** Waits for pending events of processes. */
function nextEvents(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
