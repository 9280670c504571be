/** The znode of an image, and the empty marks below it, which carry requests of operators. */

import { ensurePath, isZooKeeperError, type CallOptions, type ZooKeeper } from '@nodepool/zookeeper';
import type { StoreContext } from '../context.js';
import type { UploadPlace } from './image-refs.js';
import { imagePath, placeOfImage, providerPath } from '../paths.js';
import { znodesBelow } from '../znodes-below.js';

const NO_DATA = new Uint8Array();

/** Creates an empty znode of an image, and its parents if missing. An existing one stays. */
export async function mark(context: StoreContext, image: string, path: string, options?: CallOptions): Promise<void> {
  const { zooKeeper, caches } = context;
  for (;;) {
    try {
      const { stat } = await zooKeeper.create(path, undefined, options);
      caches.created(path, { data: NO_DATA, stat });
      return;
    } catch (error) {
      if (isZooKeeperError(error, 'node-exists')) return;
      if (isZooKeeperError(error, 'no-node')) await ensurePath(zooKeeper, imagePath(image), options);
      // Repeating the creation is safe.
      else if (!isZooKeeperError(error, 'outcome-unknown') || options?.signal?.aborted === true) throw error;
    }
  }
}

/** Deletes a mark, if it exists. */
export async function unmark({ zooKeeper }: StoreContext, path: string, options?: CallOptions): Promise<void> {
  for (;;) {
    try {
      await zooKeeper.delete(path, options);
      return;
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return;
      // Repeating the deletion is safe.
      if (!isZooKeeperError(error, 'outcome-unknown') || options?.signal?.aborted === true) throw error;
    }
  }
}

/** Deletes an image and its marks in one transaction. Returns false if it has a build or a contended lock. */
export function removeImage({ zooKeeper }: StoreContext, image: string, options?: CallOptions): Promise<boolean> {
  return removeUnless(['build', 'contender'], zooKeeper, imagePath(image), options);
}

/** Deletes a provider below a build in one transaction. Returns false if it has an upload or a contended lock. */
export function removeProvider(
  { zooKeeper }: StoreContext,
  { image, build, provider }: UploadPlace,
  options?: CallOptions,
): Promise<boolean> {
  return removeUnless(['upload', 'contender'], zooKeeper, providerPath(image, build, provider), options);
}

/** Deletes a znode and its descendants in one transaction. Returns false if descendants have one of these kinds. */
async function removeUnless(
  kinds: readonly string[],
  zooKeeper: ZooKeeper,
  path: string,
  options?: CallOptions,
): Promise<boolean> {
  const below = await znodesBelow(zooKeeper, path, options);
  if (below.some((child) => kinds.includes(placeOfImage(child)?.kind ?? ''))) return false;
  try {
    const paths = [path, ...below].reverse();
    await zooKeeper.transaction(
      paths.map((child) => ({ type: 'delete', path: child })),
      options,
    );
    return true;
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return (await zooKeeper.exists(path, options)) === undefined;
    if (isZooKeeperError(error, 'not-empty')) return false;
    throw error;
  }
}
