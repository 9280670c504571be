/** `nodepool image promote|reject|rollback|pin|unpin|revoke IMAGE`: an operator's decision about uploads. */

import { hostname, userInfo } from 'node:os';
import {
  advanceReview,
  hasImageTests,
  noteReview,
  trustedReview,
  type ImageReview,
  type ImageUpload,
  type ReviewEvent,
} from '@nodepool/core';
import { currentUpload, isBarredUpload, standingOf, type ImageStanding } from '@nodepool/store';
import { CommandError, type StoreContext } from '../command-context.js';
import { checkImage, checkProvider } from '../image-names.js';

export type ReviewAction = 'promote' | 'reject' | 'rollback' | 'pin' | 'unpin' | 'revoke';

export interface ReviewOptions {
  readonly provider?: string;
  readonly build?: string;
  readonly reason?: string;
  /** Also withdraws the only upload that requests can use. */
  readonly force?: boolean;
}

/** A change of one upload, with the sentence that reports it; a text if the action does not apply to the provider. */
type Decision =
  | {
      readonly upload: ImageUpload;
      readonly review: ImageReview;
      readonly said: string;
      /** True if the action then applies to another upload. */
      readonly continues?: boolean;
    }
  | string;

/** Attempts to write a review that other programs change at the same time. */
const MAX_ATTEMPTS = 3;

/**
 * Changes the uploads of the image. Rejects with `CommandError` if the action applies to no upload, or if a provider
 * could not be changed after others were.
 */
export async function imageReview(
  context: StoreContext,
  action: ReviewAction,
  image: string,
  options: ReviewOptions,
): Promise<void> {
  checkImage(context, image);
  if (options.provider !== undefined) checkProvider(context, options.provider);
  if (action === 'revoke' && options.build === undefined) {
    throw new CommandError('name the build to revoke with --build; `nodepool image-list` lists the builds');
  }
  const uploads = [...context.store.images.uploads({ image })];
  const providers = [...new Set(uploads.map(({ provider }) => provider))].filter(
    (name) => options.provider === undefined || options.provider === name,
  );
  const refusals: string[] = [];
  let changed = 0;
  for (const provider of providers) {
    const refusal = await change(context, action, { image, provider }, options);
    if (refusal === undefined) changed += 1;
    else refusals.push(`provider ${provider}: ${refusal}`);
  }
  if (providers.length === 0)
    throw new CommandError(`image ${image} has no upload to ${options.provider ?? 'a provider'}`);
  if (changed === 0) throw new CommandError(refusals.join('\n'));
  for (const refusal of refusals) context.out.note(refusal);
}

/** Resolves with the reason why nothing was changed; undefined if an upload was. */
async function change(
  { store, config, clock, out, interrupted }: StoreContext,
  action: ReviewAction,
  place: { readonly image: string; readonly provider: string },
  options: ReviewOptions,
): Promise<string | undefined> {
  const tests = config.providers.get(place.provider)?.diskImages.get(place.image)?.tests;
  const isTested = tests !== undefined && hasImageTests(tests);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const uploads = [...store.images.uploads(place)];
    const by = `${userInfo().username}@${hostname()}`;
    const change = { since: clock.now() / 1000, by, reason: options.reason ?? `nodepool image ${action}` };
    const decision = decide(action, uploads, standingOf(uploads, isTested), change, options.build);
    if (typeof decision === 'string') return decision;
    const { upload, review, said, continues } = decision;
    const after = uploads.map((each) => (each === upload ? { ...each, review } : each));
    const loss = lossOf(standingOf(uploads, isTested), standingOf(after, isTested), place);
    if (loss !== undefined && options.force !== true)
      return `${loss}; promote another build first, or withdraw build ${upload.build} anyway with --force`;
    const handle = await store.images.tryLockUpload(upload, { change: { review }, signal: interrupted });
    await handle?.release();
    if (handle !== undefined) {
      out.note(`provider ${place.provider}: build ${upload.build} of image ${place.image} ${said}`);
      if (loss !== undefined) out.note(`provider ${place.provider}: ${loss}`);
      if (continues !== true) return undefined;
      attempt = -1;
    }
    await store.images.syncCache({ signal: interrupted });
  }
  return 'another program is changing the upload at the moment; try again';
}

/** Returns what waits if a decision leaves no upload for requests; undefined if there is one, or was none before. */
function lossOf(
  before: ImageStanding,
  after: ImageStanding,
  { image }: { readonly image: string },
): string | undefined {
  const hadUpload = currentUpload(before) !== undefined || before.candidate !== undefined;
  const isLost = currentUpload(after) === undefined && (currentUpload(before) !== undefined || !after.candidate);
  if (!hadUpload || !isLost) return undefined;
  const until =
    after.candidate === undefined ? 'another build is uploaded' : `build ${after.candidate.build} has passed its tests`;
  return `image ${image} then has no upload for requests, and requests for its labels wait until ${until}`;
}

type Change = Parameters<typeof advanceReview>[2];

function decide(
  action: ReviewAction,
  uploads: readonly ImageUpload[],
  standing: ImageStanding,
  change: Change,
  build: string | undefined,
): Decision {
  const current = currentUpload(standing);
  const named =
    build === undefined ? undefined : uploads.findLast((each) => each.build === build && each.state === 'ready');
  if (build !== undefined && named === undefined) return `there is no ready upload of build ${build}`;
  switch (action) {
    case 'promote': {
      const upload = named ?? standing.candidate;
      if (upload === undefined) return 'no upload waits for its promotion; name another one with --build';
      if (upload === standing.promoted[0]) return `build ${upload.build} is already promoted`;
      const isJudged = standing.promoted.includes(upload) || isBarredUpload(upload);
      const since = standing.pinned === undefined ? 'serves requests from now on' : `serves requests after \`unpin\``;
      return stage(upload, isJudged ? 'reinstate' : 'promote', change, since);
    }
    case 'reject': {
      const upload = named ?? standing.candidate;
      if (upload === undefined) return 'no upload is being tested; name another one with --build, or use rollback';
      return stage(upload, 'reject', change, 'is rejected: no request gets it any more');
    }
    case 'revoke':
      if (named === undefined) return 'no build is named';
      return stage(named, 'revoke', change, 'is revoked: no request gets it, and its free ready nodes are deleted');
    case 'rollback': {
      if (standing.pinned !== undefined) return `build ${standing.pinned.build} is pinned; unpin it first`;
      const [present, previous] = standing.promoted;
      if (present === undefined || previous === undefined) return 'there is no previous upload';
      return stage(present, 'reject', change, `is rejected; build ${previous.build} serves requests again`);
    }
    case 'pin': {
      const upload = named ?? current;
      if (upload === undefined) return 'no upload serves requests';
      const review = upload.review ?? trustedReview(upload.state_time);
      if (review.stage !== 'promoted') return `build ${upload.build} is not promoted; promote it first`;
      const pinned = { ...review, pinned: { by: change.by, since: change.since } };
      return { upload, review: noteReview(pinned, 'pinned', change), said: 'is pinned: it serves all requests' };
    }
    case 'unpin': {
      // The oldest pin goes first, so that the upload that serves requests does so until the last one.
      const pinned = uploads
        .flatMap((upload) => (upload.review?.pinned === undefined ? [] : [{ upload, review: upload.review }]))
        .sort((a, b) => (a.review.pinned?.since ?? 0) - (b.review.pinned?.since ?? 0));
      const [oldest] = pinned;
      if (oldest === undefined) return 'no upload is pinned';
      const { pinned: _pinned, ...review } = oldest.review;
      const next = noteReview(review, 'unpinned', change);
      return { upload: oldest.upload, review: next, said: 'is not pinned any more', continues: pinned.length > 1 };
    }
  }
}

function stage(upload: ImageUpload, event: ReviewEvent, change: Change, said: string): Decision {
  const { review, state_time: since } = upload;
  const next = advanceReview({ review: review ?? undefined, since }, event, change);
  if (next === undefined) return `build ${upload.build} is already ${review?.stage ?? 'promoted'}`;
  return { upload, review: next, said };
}
