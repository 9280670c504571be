/**
 * Decides which upload of an image serves requests at a provider. `current` and `previous` are not stored: they follow
 * from the times of promotion, so that a promotion or a rollback is one write of one record.
 */

import { createHash } from 'node:crypto';
import { isUsableUpload, type ImageUpload, type NodeTrial } from '@nodepool/core';
import { uploadPath } from '../paths.js';

/** The uploads of one image to one provider by their part in serving requests. */
export interface ImageStanding {
  /** The upload that an operator has pinned. */
  readonly pinned: ImageUpload | undefined;
  /** Usable, trusted uploads, the newest promotion first. */
  readonly promoted: readonly ImageUpload[];
  /** The upload that is tested, or is tested next. */
  readonly candidate: ImageUpload | undefined;
  /** All uploads that are newer than the current one and not judged, the newest first. */
  readonly unjudged: readonly ImageUpload[];
}

/** Returns the upload that serves requests unless they are part of a trial. */
export function currentUpload({ pinned, promoted }: ImageStanding): ImageUpload | undefined {
  return pinned ?? promoted[0];
}

/**
 * Returns the standing of uploads of one image to one provider. `isTested`: the configuration demands a test of its
 * images, so that an upload without a review, by another builder, is trusted only if it is older than the tests.
 */
export function standingOf(uploads: Iterable<ImageUpload>, isTested: boolean): ImageStanding {
  const usable: ImageUpload[] = [];
  let testedSince = Infinity;
  for (const upload of uploads) {
    testedSince = Math.min(testedSince, upload.review?.promoted ?? Infinity);
    if (isUsableUpload(upload)) usable.push(upload);
  }
  const promoted: ImageUpload[] = [];
  const others: ImageUpload[] = [];
  let pinned: ImageUpload | undefined;
  for (const upload of usable) {
    const { review, state_time: since } = upload;
    const stage = review?.stage ?? (isTested && since > testedSince ? 'uploaded' : 'promoted');
    if (isBarredUpload(upload)) continue;
    if (review?.pinned !== undefined && (pinned?.review?.pinned?.since ?? -1) < review.pinned.since) pinned = upload;
    (stage === 'promoted' ? promoted : others).push(upload);
  }
  promoted.sort((a, b) => promotedAt(b) - promotedAt(a) || byAge(b, a));
  others.sort((a, b) => byAge(b, a));
  // An upload that is older than the current one has been superseded before it was tested.
  const [current] = promoted;
  const newer = current === undefined ? others : others.filter((each) => byAge(each, current) > 0);
  const candidate = newer.find(({ review }) => review?.stage === 'canary') ?? newer[0];
  return { pinned, promoted, candidate, unjudged: newer };
}

/** The settings of a provider that the choice depends on. */
export interface ChoicePolicy {
  readonly isTested: boolean;
  /** Share of the launches that use a candidate in its trial, 0 to 1. */
  readonly share: number;
}

/** The request that a node is launched for. */
export interface ChoosingRequest {
  readonly id: string;
  /** Path of the upload that a launch test demands. */
  readonly exactly: string | undefined;
}

export interface ImageChoice {
  readonly upload: ImageUpload;
  /** The part of the launch in a trial, if there is one. */
  readonly trial: Pick<NodeTrial, 'upload' | 'candidate' | 'share'> | undefined;
}

/**
 * Chooses the upload from which a node is launched; undefined if no upload may be used. During a trial, the same
 * request always gets the same upload. Without a request, returns the upload that needs no trial.
 */
export function chooseUpload(
  uploads: Iterable<ImageUpload>,
  { isTested, share }: ChoicePolicy,
  request: ChoosingRequest | undefined,
): ImageChoice | undefined {
  const known = [...uploads];
  if (request?.exactly !== undefined) {
    const upload = known.find((each) => isUsableUpload(each) && pathOf(each) === request.exactly);
    return upload === undefined || isBarredUpload(upload) ? undefined : { upload, trial: undefined };
  }
  const standing = standingOf(known, isTested);
  const current = currentUpload(standing);
  if (current === undefined) return undefined;
  const { candidate, pinned } = standing;
  const isOnTrial = candidate?.review?.stage === 'canary' && pinned === undefined && share > 0;
  if (candidate === undefined || !isOnTrial || request === undefined) return { upload: current, trial: undefined };
  const path = pathOf(candidate);
  const isCandidate = fractionOf(`${request.id} ${path}`) < share;
  return { upload: isCandidate ? candidate : current, trial: { upload: path, candidate: isCandidate, share } };
}

/** The part of an upload in serving requests, for people. */
export type UploadStanding =
  'current' | 'previous' | 'superseded' | 'uploaded' | 'launch-tested' | 'canary' | 'rejected' | 'revoked';

/** Returns true if no request may use the upload. */
export function isBarredUpload({ review }: Pick<ImageUpload, 'review'>): boolean {
  return review?.stage === 'rejected' || review?.stage === 'revoked';
}

/** Returns the part of each usable upload of one image to one provider. */
export function standingsOf(
  uploads: Iterable<ImageUpload>,
  isTested: boolean,
): ReadonlyMap<ImageUpload, UploadStanding> {
  const known = [...uploads];
  const standing = standingOf(known, isTested);
  const current = currentUpload(standing);
  const [previous] = standing.promoted.filter((upload) => upload !== current);
  const parts = new Map<ImageUpload, UploadStanding>();
  for (const upload of known) {
    if (!isUsableUpload(upload)) continue;
    const stage = upload.review?.stage;
    if (stage === 'rejected' || stage === 'revoked') parts.set(upload, stage);
    else if (upload === current) parts.set(upload, 'current');
    else if (upload === previous) parts.set(upload, 'previous');
    else if (upload !== standing.candidate) parts.set(upload, 'superseded');
    else parts.set(upload, stage === undefined || stage === 'promoted' ? 'uploaded' : stage);
  }
  return parts;
}

/** Returns the path of an upload's record, which is also the `image_id` of its nodes. */
export function pathOf({ image, build, provider, id }: ImageUpload): string {
  return uploadPath(image, build, provider, id);
}

function promotedAt({ review, state_time: since }: ImageUpload): number {
  return review?.promoted ?? since;
}

/** Orders by age, oldest first; ties have a stable order. */
function byAge(a: ImageUpload, b: ImageUpload): number {
  return a.state_time - b.state_time || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Returns a number from 0 to 1 that only the text determines. */
function fractionOf(text: string): number {
  return createHash('sha256').update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}
