import type { NodeData } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';

/** Marks the node as `deleting`, with `change`, for `Deletions`. Returns false if it is locked or not as in `entry`. */
export async function deleteFreeNode(
  { store, decisions }: Pick<LauncherContext, 'store' | 'decisions'>,
  entry: NodeEntry,
  by: string,
  reason: string,
  change: Partial<NodeData> = {},
): Promise<boolean> {
  const handle = await store.nodes.tryLock(entry.id, { from: entry, change: { ...change, state: 'deleting' } });
  if (handle === undefined) return false;
  decisions.record('node', entry.id, by, 'to be deleted', reason);
  await handle.release();
  return true;
}
