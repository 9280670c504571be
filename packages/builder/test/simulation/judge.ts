/** Launchers and operators that judge uploads: they promote, reject, roll back and pin at random. */

import {
  advanceReview,
  type Clock,
  type ImageReview,
  type ImageUpload,
  type RandomSource,
  type ReviewEvent,
} from '@nodepool/core';
import { currentUpload, standingOf, type Store } from '@nodepool/store';
import type { Site } from '../support/world.js';

/** The part of a world in which uploads are judged. */
export interface JudgedWorld {
  readonly clock: Clock;
  readonly operator: Store;
}

/** The image and the provider whose uploads are tested. */
export const JUDGED = { image: 'debian', provider: 'two' } as const;

const PAUSE_MS = { least: 60_000, greatest: 900_000 } as const;
/** Share of uploads that pass their tests. */
const GOOD = 0.5;

/** Returns the site with a boot test of the judged image, and a launch test at the judged provider. */
export function withTests(site: Site): Site {
  const image = site.images[JUDGED.image];
  const provider = site.providers[JUDGED.provider];
  const bootTest = { timeoutMs: 60_000, memory: 512, cpus: 1, kvm: true, command: undefined, commandTimeoutMs: 60_000 };
  const launchTest = { command: undefined, timeoutMs: 60_000, identity: undefined };
  return {
    images: image === undefined ? site.images : { ...site.images, [JUDGED.image]: { ...image, bootTest } },
    providers:
      provider === undefined
        ? site.providers
        : { ...site.providers, [JUDGED.provider]: { ...provider, tests: { launchTest, canary: undefined } } },
  };
}

/** Starts to judge, until the process of the world ends. */
export function judge(world: JudgedWorld, random: RandomSource): void {
  const pauseMs = PAUSE_MS.least + Math.floor(random.next() * (PAUSE_MS.greatest - PAUSE_MS.least));
  world.clock.schedule(pauseMs, () => {
    void decide(world, random).catch(() => undefined);
    judge(world, random);
  });
}

async function decide(world: JudgedWorld, random: RandomSource): Promise<void> {
  const { images } = world.operator;
  const uploads = [...images.uploads(JUDGED)];
  const standing = standingOf(uploads, true);
  const { candidate, promoted, pinned } = standing;
  const chance = random.next();
  if (candidate !== undefined && chance < 0.7) {
    await write(world, candidate, next(world, candidate, random.next() < GOOD ? 'promote' : 'reject'));
  } else if (promoted.length > 1 && pinned === undefined && chance < 0.8) {
    const [present] = promoted;
    if (present !== undefined) await write(world, present, next(world, present, 'reject'));
  } else if (chance < 0.9) {
    const upload = pinned ?? currentUpload(standing);
    if (upload?.review === undefined || upload.review === null) return;
    const { pinned: pin, ...review } = upload.review;
    await write(world, upload, pin ? review : { ...review, pinned: { by: 'ada', since: world.clock.now() / 1000 } });
  }
}

function next(world: JudgedWorld, upload: ImageUpload, event: ReviewEvent): ImageReview | undefined {
  const { review = null, state_time: since } = upload;
  const change = { since: world.clock.now() / 1000, by: 'judge', reason: event };
  return advanceReview({ review: review ?? undefined, since }, event, change);
}

async function write(world: JudgedWorld, upload: ImageUpload, review: ImageReview | undefined): Promise<void> {
  if (review === undefined) return;
  const handle = await world.operator.images.tryLockUpload(upload, { change: { review } });
  await handle?.lock.release();
}
