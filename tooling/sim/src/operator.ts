/** What operators do: they free a pool that is full of ready nodes while requests for others wait, and delete what is leaked. */

import { lockRecipe } from '@nodepool/zookeeper';
import { announcing } from './announcing.js';
import type { RequestorSurroundings } from './requestor.js';
import { isForeign } from './rules/instances.js';
import type { World } from './world.js';

/** Deletes the instances that no record knows. */
export function deleteLeakedByHand({ cloud, checker }: Pick<World, 'cloud' | 'checker'>): void {
  for (const { id, tags } of cloud.existingInstances()) {
    const node = checker.observed.nodes.get(tags['nodepool_node_id'] ?? '');
    if (isForeign(tags) || node?.data['external_id'] === id) continue;
    checker.step(`the operator deletes ${id} by hand`);
    cloud.destroyInstance(id);
  }
}

/** Puts every ready node that nobody has into `used`, under its lock, if a request waits. */
export async function freeIdleNodes({
  server,
  clock,
  checker,
  random,
}: Omit<RequestorSurroundings, 'now' | 'provider'>): Promise<void> {
  const { nodes, requests } = checker.observed;
  if (![...requests.values()].some(({ data }) => data['state'] === 'requested')) return;
  const zooKeeper = announcing({ server, clock, checker });
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
