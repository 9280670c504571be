import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { HeapPolicy } from '@nodepool/daemon';

test('the heap policy returns memory while the process is idle', () => {
  const flags: string[] = [];
  let utilization = 1;
  const policy = new HeapPolicy({
    setFlag: (flag) => flags.push(flag),
    utilization: () => utilization,
    newSpaceBytes: () => 0,
  });
  const beat = (): void => {
    for (let index = 0; index < 20; index += 1) policy.beat();
  };
  beat();
  expect(flags).toEqual([]);
  utilization = 0.01;
  beat();
  expect(flags.splice(0)).toEqual(['--optimize-for-size', '--heap-growing-percent=30']);
  utilization = 0.5;
  beat();
  expect(flags.splice(0)).toEqual(['--no-optimize-for-size', '--heap-growing-percent=0']);
});

test('the heap policy limits the space for new objects in a burst', () => {
  const flags: string[] = [];
  let [utilization, newSpaceBytes] = [1, 1];
  const policy = new HeapPolicy({
    setFlag: (flag) => flags.push(flag),
    utilization: () => utilization,
    newSpaceBytes: () => newSpaceBytes,
  });
  const beatAt = (megabytes: number): readonly string[] => {
    newSpaceBytes = megabytes * 1024 * 1024;
    policy.beat();
    return flags.splice(0);
  };
  expect(beatAt(16)).toEqual([]);
  expect(beatAt(32)).toEqual(['--semi-space-growth-factor=1']);
  expect(beatAt(32)).toEqual([]);
  utilization = 0;
  beatAt(32);
  // The idle process has returned its memory.
  for (let index = 0; index < 20; index += 1) expect(beatAt(2)).toEqual([]);
  utilization = 1;
  for (let index = 0; index < 20; index += 1) flags.push(...beatAt(2));
  expect(flags).toContain('--semi-space-growth-factor=2');
});

test.each(['--optimize-for-size', '--heap-growing-percent', '--semi-space-growth-factor'])(
  'this Node.js supports %s',
  (flag) => {
    const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    expect(known).toContain(`${flag} `);
  },
);
