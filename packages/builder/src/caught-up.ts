/** Brings the caches up to date before something is decided under a lock. */

import { IMAGES_ROOT, type Store } from '@nodepool/store';

/**
 * Resolves when the store knows what others had written when this was called. Answers come in order: the first read is
 * answered after the events of those writes, the second after the reads that the cache makes for these events.
 */
export async function caughtUp({ zooKeeper }: Store, signal: AbortSignal): Promise<void> {
  await zooKeeper.sync(IMAGES_ROOT, { signal });
  await zooKeeper.exists(IMAGES_ROOT, { signal });
  await zooKeeper.exists(IMAGES_ROOT, { signal });
}
