/** The scenario on a simulated OpenStack, with the built launcher, the OpenStack driver and the Python requestor. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { simulatedCloud, type ScenarioCloud } from '../src/cloud.js';
import type { Sizes } from '../src/scenes.js';
import { runScenes, tableOf } from '../src/run-scenes.js';

const SIZES: Sizes = { nodes: 12, equipped: 3, limited: 5, killed: 8, restarted: 6, regions: 12 };

describe('on a simulated OpenStack', () => {
  let cloud: ScenarioCloud;

  beforeAll(async () => {
    cloud = await simulatedCloud();
  });

  afterAll(async () => {
    await cloud.close();
  });

  it.each([
    ['a', 'a launcher serves concurrent requests for many nodes with few API calls, and leaves nothing behind'],
    ['e', 'servers get floating IPs and volumes, which are deleted with them'],
    ['b', 'a project with a quota of three servers serves all requests one after the other'],
    ['c', 'a launcher resumes the launches of a killed one, without duplicates or leaks'],
    ['d', 'no request fails while keystone restarts'],
    ['f', 'no request fails while one of two regions is full and then unreachable'],
  ])('%s: %s', async (scene) => {
    const said: string[] = [];
    const rows = await runScenes({ cloud, sizes: SIZES, only: [scene], say: (line) => said.push(line) });

    expect(rows.length).toBeGreaterThan(3);
    const missed = rows.filter(({ met }) => !met);
    if (missed.length > 0) throw new Error(`${said.join('\n')}\n${tableOf(rows)}`);
  });
});
