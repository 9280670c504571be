import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { HeapPolicy } from '@nodepool/daemon';

test('the heap policy returns memory while the process is idle', () => {
  const flags: string[] = [];
  let utilization = 1;
  const policy = new HeapPolicy({ setFlag: (flag) => flags.push(flag), utilization: () => utilization });
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

test.each(['--optimize-for-size', '--heap-growing-percent'])('this Node.js supports %s', (flag) => {
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
  expect(known).toContain(`${flag} `);
});
