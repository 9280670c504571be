/** Tests that tenants get their shares of scarce capacity, and that nothing changes without shares. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DecisionLog } from '@nodepool/status';
import { explainRequest } from '@nodepool/status/web';
import { readCloudSettings } from '@nodepool/driver-example';
import { Contention, shares } from './support/contention.js';
import { pool, provider, World } from './support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const SECTION = [provider('demo', [pool('main', ['small', 'large'], { 'max-servers': 20 })])];
const HOUR = 3600;

describe('tenants in contention', () => {
  it('get nodes by their weights', async () => {
    const launcher = await world.launcher(SECTION, 'launcher1', { fairShares: shares({ a: 3, b: 1 }) });
    const contention = new Contention(world, launcher);
    const hold = (): number => 60 + 120 * world.random.next();
    await contention.run(
      [
        { tenant: 'a', labels: ['small'], backlog: 4, hold },
        { tenant: 'b', labels: ['small'], backlog: 40, hold },
      ],
      HOUR,
    );
    expect(contention.parts()).toEqual({ a: expect.closeTo(0.75, 1), b: expect.closeTo(0.25, 1) });
    console.log(contention.parts(), contention.longestWait);
  });
});
