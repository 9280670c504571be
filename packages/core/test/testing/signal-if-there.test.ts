import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from '@jest/globals';
import { signalIfThere } from '@nodepool/core/testing';

it('a signal reaches a process and its group, and none that has ended', async () => {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
  await once(child, 'spawn');
  const pid = child.pid ?? 0;
  expect([signalIfThere(pid, 0), signalIfThere(-pid, 0)]).toEqual([true, true]);
  const ended = once(child, 'exit');
  expect(signalIfThere(-pid)).toBe(true);
  expect(await ended).toEqual([null, 'SIGKILL']);
  expect([signalIfThere(pid), signalIfThere(-pid)]).toEqual([false, false]);
});

it.each([0, -0, -1, 1, NaN, 1.5])('%d names no process', (pid) => {
  expect(signalIfThere(pid, 0)).toBe(false);
});
