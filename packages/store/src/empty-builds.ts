/**
 * Empty records of builds. A contender for a lock below a build that is deleted meanwhile leaves such a record behind,
 * because the lock recipe creates missing parents.
 */

import { isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import type { StoreContext } from './context.js';
import type { EmptyBuild } from './image-api.js';
import { placeOfImage } from './paths.js';
import { znodesBelow } from './znodes-below.js';

/** Reads the record past the cache. Resolves with undefined if there is none, or if it is not empty or is in use. */
export async function readEmptyBuild(
  { zooKeeper }: StoreContext,
  path: string,
  options?: CallOptions,
): Promise<EmptyBuild | undefined> {
  if (placeOfImage(path)?.kind !== 'build') return undefined;
  try {
    const { data, stat } = await zooKeeper.get(path, options);
    if (data.length > 0) return undefined;
    const below = await znodesBelow(zooKeeper, path, options);
    return below.some(isInUse) ? undefined : { path, version: stat.version, created: stat.czxid, below };
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return undefined;
    throw error;
  }
}

/** Deletes the record in one transaction. Returns false, changing nothing, if it has changed. */
export async function removeEmptyBuild(
  { zooKeeper }: StoreContext,
  { path, version, below }: EmptyBuild,
  options?: CallOptions,
): Promise<boolean> {
  try {
    await zooKeeper.transaction(
      [
        ...[...below].reverse().map((child) => ({ type: 'delete' as const, path: child })),
        { type: 'delete', path, version },
      ],
      options,
    );
    return true;
  } catch (error) {
    const codes = ['no-node', 'not-empty', 'bad-version'] as const;
    if (codes.some((code) => isZooKeeperError(error, code))) return false;
    throw error;
  }
}

/** Returns true for uploads, contenders, and znodes that are no contenders of locks. */
function isInUse(path: string): boolean {
  return ['upload', 'contender', 'foreign'].includes(placeOfImage(path)?.kind ?? '');
}
