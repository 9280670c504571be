/** Decides the next step of the review of an image's uploads to one provider. */

import type { ImageTests, ImageUpload } from '@nodepool/core';
import { currentUpload, standingOf } from '@nodepool/store';
import { describeTrial, evidenceOf, verdictOf } from './canary-test.js';

export type ReviewStep =
  /** Records that the upload was in service before its image had tests. */
  | { readonly kind: 'adopt'; readonly upload: ImageUpload }
  /** Records that the upload, by a builder without reviews, is to be tested. */
  | { readonly kind: 'enter'; readonly upload: ImageUpload }
  | { readonly kind: 'test'; readonly upload: ImageUpload }
  | { readonly kind: 'trial'; readonly upload: ImageUpload }
  | { readonly kind: 'promote' | 'reject'; readonly upload: ImageUpload; readonly reason: string };

/** Returns the next step; undefined if the review waits for nodes or for an operator, or is complete. */
export function planReview(
  uploads: readonly ImageUpload[],
  { launchTest, canary }: ImageTests,
): ReviewStep | undefined {
  const isTested = launchTest !== undefined || canary !== undefined;
  const standing = standingOf(uploads, isTested);
  const { promoted, candidate, pinned } = standing;
  const current = currentUpload(standing);
  const [inService] = promoted;
  if (isTested && inService !== undefined && !uploads.some(({ review }) => review?.promoted !== undefined)) {
    return { kind: 'adopt', upload: inService };
  }
  if (candidate === undefined) return undefined;
  const { review } = candidate;
  if (review === undefined || review === null) return { kind: 'enter', upload: candidate };
  if (review.stage === 'uploaded' && launchTest !== undefined) return { kind: 'test', upload: candidate };
  if (canary === undefined) {
    const reason = review.stage === 'launch-tested' ? 'it has passed its launch test' : 'no further test is configured';
    return { kind: 'promote', upload: candidate, reason };
  }
  if (current === undefined) {
    return { kind: 'promote', upload: candidate, reason: 'there is no current image to compare it with' };
  }
  if (review.stage !== 'canary') return pinned === undefined ? { kind: 'trial', upload: candidate } : undefined;
  const { trial } = review;
  const verdict = trial && verdictOf(trial, canary);
  if (trial === undefined || verdict === undefined) return undefined;
  const counts = describeTrial(trial);
  if (verdict === 'no worse') {
    return { kind: 'promote', upload: candidate, reason: `it is no worse than the current image: ${counts}` };
  }
  const times = Math.round(evidenceOf(trial));
  const reason = `it is worse than the current image: ${counts}; ${times} times as likely as with an equal image`;
  return { kind: 'reject', upload: candidate, reason };
}
