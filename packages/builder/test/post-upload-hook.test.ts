/** The post-upload hook as a process. */

import childProcess, { ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { silentLogger } from '@nodepool/core';
import { runPostUploadHook, type HookCall } from '../src/index.js';
import { eventually, isRunning } from './support/processes.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodepool-hook-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function hook(script: string): Promise<HookCall> {
  const command = join(folder, 'hook');
  await writeFile(command, `#!/bin/sh\n${script}\n`);
  await chmod(command, 0o755);
  const { signal } = new AbortController();
  return { command, provider: 'one', externalId: 'image-1', file: '/images/debian.qcow2', signal, log: silentLogger };
}

it('the post-upload-hook gets the provider, the external id and the file', async () => {
  await runPostUploadHook(await hook(`printf '%s|' "$@" > ${join(folder, 'arguments')}`));
  expect(await readFile(join(folder, 'arguments'), 'utf8')).toBe('one|image-1|/images/debian.qcow2|');
});

it('the post-upload-hook rejects an image by its exit status, and its output is reported', async () => {
  await expect(runPostUploadHook(await hook('echo the image has no kernel; exit 3'))).rejects.toThrow(
    /hook ended with 3; its output: the image has no kernel/,
  );
});

it('a missing post-upload-hook rejects every image', async () => {
  const call = { ...(await hook('')), command: '/usr/bin/no-such-hook' };
  await expect(runPostUploadHook(call)).rejects.toThrow('/usr/bin/no-such-hook cannot be run');
});

it('a post-upload-hook for which no file descriptors are left rejects the image', async () => {
  // Node.js returns a child without streams, and reports the error later.
  const child = new ChildProcess();
  const spawn = jest.spyOn(childProcess, 'spawn').mockImplementation(() => {
    process.nextTick(() => child.listenerCount('error') > 0 && child.emit('error', new Error('spawn EMFILE')));
    return child;
  });
  try {
    await expect(runPostUploadHook(await hook(''))).rejects.toThrow('cannot be run: spawn EMFILE');
    expect(child.listenerCount('error')).toBe(0);
  } finally {
    spawn.mockRestore();
  }
});

it('the post-upload-hook is stopped with its child processes once its result is no longer needed', async () => {
  const stop = new AbortController();
  const pids = join(folder, 'pids');
  const call = await hook(`sleep 3600 & echo $! > ${pids}.new; mv ${pids}.new ${pids}; wait`);
  const running = runPostUploadHook({ ...call, signal: stop.signal });
  let pid = '';
  await eventually(async () => (pid = await readFile(pids, 'utf8').catch(() => '')) !== '');
  stop.abort();
  await expect(running).rejects.toThrow('ended by SIGKILL');
  await eventually(async () => !(await isRunning(pid.trim())));
});
