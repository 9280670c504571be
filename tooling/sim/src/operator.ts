/** Simulates operators after a launcher has reported too many leaked instances to delete them itself. */

import { isForeign } from './rules/instances.js';
import type { World } from './world.js';

/** Deletes the instances without a record. */
export function deleteLeakedByHand({ cloud, checker }: Pick<World, 'cloud' | 'checker'>): void {
  for (const { id, tags } of cloud.existingInstances()) {
    const node = checker.observed.nodes.get(tags['nodepool_node_id'] ?? '');
    if (isForeign(tags) || node?.data['external_id'] === id) continue;
    checker.step(`the operator deletes ${id} by hand`);
    cloud.destroyInstance(id);
  }
}
