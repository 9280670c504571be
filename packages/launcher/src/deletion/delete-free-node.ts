/** Marks a node that nobody has for deletion, under its lock. */

import type { NodeEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';

/** False when it is somebody's by now, or has changed otherwise since `entry`. Deletions then take care of it. */
export async function deleteFreeNode(
  { store, decisions }: Pick<LauncherContext, 'store' | 'decisions'>,
  entry: NodeEntry,
  by: string,
  reason: string,
): Promise<boolean> {
  const handle = await store.nodes.tryLock(entry.id, { from: entry, change: { state: 'deleting' } });
  if (handle === undefined) return false;
  decisions.record('node', entry.id, by, 'to be deleted', reason);
  await handle.release();
  return true;
}
