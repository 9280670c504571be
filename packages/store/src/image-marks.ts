/** The znode of an image, and the empty ones below it by which operators ask for something. */

import { isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import type { StoreContext } from './context.js';
import { imagePath, placeOfImage } from './paths.js';
import { znodesBelow } from './znodes-below.js';

const NO_DATA = new Uint8Array();

/** Makes an empty znode of an image, and the image's if it is missing. One that is there stays. */
export async function mark(context: StoreContext, image: string, path: string, options?: CallOptions): Promise<void> {
  const { zooKeeper, caches } = context;
  for (;;) {
    try {
      const { stat } = await zooKeeper.create(path, undefined, options);
      caches.learn([{ path, node: { data: NO_DATA, stat } }]);
      return;
    } catch (error) {
      if (isZooKeeperError(error, 'node-exists')) return;
      if (isZooKeeperError(error, 'no-node')) await mark(context, image, imagePath(image), options);
      // To make it twice does no harm.
      else if (!isZooKeeperError(error, 'outcome-unknown') || options?.signal?.aborted === true) throw error;
    }
  }
}

/** That there is no such znode is fine. */
export async function unmark({ zooKeeper }: StoreContext, path: string, options?: CallOptions): Promise<void> {
  for (;;) {
    try {
      await zooKeeper.delete(path, options);
      return;
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return;
      // To remove it twice does no harm.
      if (!isZooKeeperError(error, 'outcome-unknown') || options?.signal?.aborted === true) throw error;
    }
  }
}

/** Removes an image and its marks in one transaction. False: it has a build, or somebody contends for a lock. */
export async function removeImage({ zooKeeper }: StoreContext, image: string, options?: CallOptions): Promise<boolean> {
  const path = imagePath(image);
  const below = await znodesBelow(zooKeeper, path, options);
  if (below.some((child) => ['build', 'contender'].includes(placeOfImage(child)?.kind ?? ''))) return false;
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
