/** Simulates operators after launchers have suspended deletions. */

import { isForeign } from './rules/instances.js';
import type { World } from './world.js';

const SUSPENSIONS = '/nodepool/suspensions/';

export function isSuspended({ server }: Pick<World, 'server'>): boolean {
  return [...server.dump().keys()].some((path) => path.startsWith(SUSPENSIONS));
}

/** Does what `nodepool orphans confirm` does. */
export async function confirmRecords({ server, checker }: Pick<World, 'server' | 'checker'>): Promise<void> {
  const client = server.connect();
  for (const path of server.dump().keys()) {
    if (!path.startsWith(SUSPENSIONS)) continue;
    checker.step(`the operator confirms ${path}`);
    await client.delete(path);
  }
  await client.close();
}

/** Deletes the instances without a record. */
export function deleteLeakedByHand({ cloud, checker }: Pick<World, 'cloud' | 'checker'>): void {
  for (const { id, tags } of cloud.existingInstances()) {
    const node = checker.observed.nodes.get(tags['nodepool_node_id'] ?? '');
    if (isForeign(tags) || node?.data['external_id'] === id) continue;
    checker.step(`the operator deletes ${id} by hand`);
    cloud.destroyInstance(id);
  }
}
