/** The life of jobs: assigned by GitHub, run on a node of their own, and nothing left afterwards. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { World } from './support/world.js';

let world: World;

beforeEach(async () => {
  world = await World.start();
});
afterEach(async () => {
  await world.stop();
});

it('each job runs once, on a node of its own, with its data in the request, and nothing is left', async () => {
  world.startBridge();
  for (let count = 0; count < 5; count++) world.github.queueJob({ repository: 'acme/app', labels: ['linux'] });
  await world.untilServed();
  const jobs = world.github.inspect.jobs();
  expect(jobs.map(({ result, startedBy }) => [result, startedBy.length])).toEqual(jobs.map(() => ['succeeded', 1]));
  expect(new Set(jobs.flatMap(({ startedBy }) => startedBy)).size).toBe(5);
  expect([...world.launcher.deleted].sort()).toEqual([...world.launcher.launched].sort());
  expect(world.lines.filter((line) => line.startsWith('error') || line.startsWith('warn'))).toEqual([]);
});
