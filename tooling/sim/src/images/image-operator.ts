/** An operator who decides about uploads at any time, as `nodepool image` does: one versioned write of one record. */

import { advanceReview, noteReview, sleep, trustedReview, type ImageReview, type ImageUpload } from '@nodepool/core';
import type { RandomSource } from '@nodepool/core';
import { openStore, type Store } from '@nodepool/store';
import { announcing } from '../announcing.js';
import { between, oneOf, weighted } from '../chance.js';
import type { World } from '../world.js';
import { DISK_IMAGE } from '../site.js';

const PAUSE_MS = { least: 10_000, greatest: 120_000 } as const;

type Action = 'build' | 'promote' | 'reject' | 'rollback' | 'pin' | 'unpin' | 'revoke';

/** Builds are frequent, so that each run has many candidates. */
const ACTIONS: readonly (readonly [weight: number, action: Action])[] = [
  [12, 'build'],
  [2, 'promote'],
  [2, 'reject'],
  [2, 'rollback'],
  [2, 'pin'],
  [4, 'unpin'],
  [1, 'revoke'],
];

/** Acts until `isOver`. Resolves once all pins are removed and a good build is requested. */
export async function operateImages(world: World, random: RandomSource, isOver: () => boolean): Promise<void> {
  const { clock, checker } = world;
  const store = openStore(announcing(world), { clock, random, identifier: 'operator' });
  store.start();
  await store.ready();
  await store.images.requestBuild(DISK_IMAGE.name);
  while (!isOver()) {
    await sleep(clock, between(random, PAUSE_MS.least, PAUSE_MS.greatest));
    const action = weighted(random, ACTIONS) ?? 'build';
    try {
      await act(world, store, random, action);
    } catch (error) {
      checker.step(`the operator cannot ${action}: ${String(error)}`);
    }
  }
  for (const provider of ['alpha', 'beta']) while (await unpin(world, store, provider));
  store.close();
}

async function act(world: World, store: Store, random: RandomSource, action: Action): Promise<void> {
  const { name: image } = DISK_IMAGE;
  if (action === 'build') {
    await store.images.requestBuild(image);
    return;
  }
  const provider = oneOf(random, ['alpha', 'beta']) ?? 'alpha';
  if (action === 'unpin') {
    await unpin(world, store, provider);
    return;
  }
  const uploads = [...store.images.uploads({ image, provider })].filter(({ state }) => state === 'ready');
  const promoted = uploads
    .filter(({ review }) => review?.stage === 'promoted')
    .sort((a, b) => (b.review?.promoted ?? 0) - (a.review?.promoted ?? 0));
  const waiting = uploads.filter(({ review }) => review?.stage !== 'promoted');
  const change = { since: world.clock.now() / 1000, by: 'operator', reason: action };
  const write = (upload: ImageUpload | undefined, review: ImageReview | undefined): Promise<boolean> =>
    writeReview(store, upload, review);
  const staged = (upload: ImageUpload | undefined, event: 'promote' | 'reject' | 'revoke'): Promise<boolean> =>
    write(upload, upload && advanceReview({ review: upload.review ?? undefined, since: 0 }, event, change));
  const [current, previous] = promoted;
  switch (action) {
    case 'promote':
    case 'reject':
      await staged(oneOf(random, waiting), action);
      return;
    case 'rollback':
      // The command refuses to reject the only image.
      if (previous !== undefined) await staged(current, 'reject');
      return;
    case 'revoke':
      if (previous !== undefined) await staged(oneOf(random, uploads), 'revoke');
      return;
    case 'pin': {
      const upload = oneOf(random, promoted);
      const review = upload && (upload.review ?? trustedReview(upload.state_time));
      const pinned = { by: 'operator', since: change.since };
      await write(upload, review && noteReview({ ...review, pinned }, 'pinned', change));
    }
  }
}

/** Resolves with true if an upload may still be pinned. */
async function unpin({ clock }: World, store: Store, provider: string): Promise<boolean> {
  const uploads = [...store.images.uploads({ image: DISK_IMAGE.name, provider })];
  const upload = uploads.find(({ review }) => review?.pinned !== undefined);
  if (upload?.review === undefined || upload.review === null) return false;
  const { pinned: _pinned, ...review } = upload.review;
  const change = { since: clock.now() / 1000, by: 'operator', reason: 'unpin' };
  await writeReview(store, upload, noteReview(review, 'unpinned', change));
  await sleep(clock, 1000);
  return true;
}

/** Resolves with false if the review was not written: the operator repeats that or not. */
async function writeReview(
  store: Store,
  upload: ImageUpload | undefined,
  review: ImageReview | undefined,
): Promise<boolean> {
  if (upload === undefined || review === undefined) return false;
  const handle = await store.images.tryLockUpload(upload, { change: { review } });
  await handle?.release();
  return handle !== undefined;
}
