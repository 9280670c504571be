/** The clock of leases, which is that of the ensemble. */

import { expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { EnsembleClock } from '../src/leases/ensemble-clock.js';

/** A clock that an administrator can set. */
class ClockOfHost extends VirtualClock {
  jumpMs = 0;

  override now(): number {
    return super.now() + this.jumpMs;
  }
}

it('follows the ensemble, whatever the clock of the gateway shows', async () => {
  const clock = new ClockOfHost();
  const server = (): number => clock.monotonic() + 5_000_000;
  const set = (): Promise<unknown> => Promise.resolve({ mtime: server() });
  const time = new EnsembleClock({ set } as unknown as ZooKeeper, clock);
  expect(time.now()).toBe(clock.now() / 1000);
  await time.measure();
  for (const jumpMs of [0, 86_400_000, -86_400_000]) {
    clock.jumpMs = jumpMs;
    await clock.advance(60_000);
    expect(time.now()).toBe(server() / 1000);
  }
});
