import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { HeapPolicy } from '@nodepool/daemon';
import { VirtualClock } from '@nodepool/core/testing';

test('the heap policy returns memory while the process is idle', async () => {
  const clock = new VirtualClock();
  const flags: string[] = [];
  let utilization = 1;
  const policy = new HeapPolicy({ clock, setFlag: (flag) => flags.push(flag), utilization: () => utilization });
  policy.start();
  expect(flags).toEqual([]);
  utilization = 0.01;
  await clock.advance(5000);
  expect(flags.splice(0)).toEqual(['--optimize-for-size']);
  utilization = 0.5;
  await clock.advance(5000);
  expect(flags.splice(0)).toEqual(['--no-optimize-for-size']);
  policy.stop();
  utilization = 0.01;
  await clock.advance(5000);
  expect(flags).toEqual([]);
});

test('this Node.js supports the flag', () => {
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
  expect(known).toContain('--optimize-for-size ');
});
