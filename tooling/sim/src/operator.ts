/** An operator who frees a pool that is full of ready nodes while requests for others wait. */

import { lockRecipe } from '@nodepool/zookeeper';
import type { RequestorSurroundings } from './requestor.js';

/** Puts every ready node that nobody has into `used`, under its lock, if a request waits. */
export async function freeIdleNodes({ server, clock, checker, random }: RequestorSurroundings): Promise<void> {
  const { nodes, requests } = checker.observed;
  if (![...requests.values()].some(({ data }) => data['state'] === 'requested')) return;
  const zooKeeper = server.connect({ clock, sessionTimeoutMs: 9000 });
  const locks = lockRecipe(zooKeeper, { identifier: 'requestor', random });
  try {
    for (const { id, data, holder } of [...nodes.values()]) {
      if (data['state'] !== 'ready' || data['allocated_to'] !== null || holder !== undefined) continue;
      const lock = (await locks.tryAcquire(`/nodepool/nodes/${id}/lock`))?.lock;
      if (lock === undefined) continue;
      const now = nodes.get(id);
      if (now?.data['allocated_to'] === null && now.data['state'] === 'ready') {
        checker.step(`the operator frees node ${id}`);
        const used = { ...now.data, state: 'used', state_time: clock.now() / 1000 };
        await zooKeeper.set(`/nodepool/nodes/${id}`, new TextEncoder().encode(JSON.stringify(used)));
      }
      await lock.release();
    }
  } finally {
    await zooKeeper.close();
  }
}
