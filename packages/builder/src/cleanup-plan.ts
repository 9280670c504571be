/**
 * Decides which builds and uploads of an image to delete. The plan keeps the two newest ready builds of a configured
 * image and, because nodes are launched from them, the two newest ready uploads to every provider that lists it, with
 * the records of their builds. Uploads with reviews are kept according to their stages instead of their ages.
 *
 * Deleting a build also deletes its uploads. Only an operator can mark a build `deleting` while its uploads are in
 * service; automatic cleanup never does. Locked objects are not deleted.
 */

import {
  hasImageTests,
  isUsableUpload,
  type DiskImageConfig,
  type ImageBuild,
  type ImageTests,
  type ImageUpload,
} from '@nodepool/core';
import { isBarredUpload, standingOf, type BuildRef, type ImageStore } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import { newestReadyBuild, readyBuilds } from './build-plan.js';
import { formatsToUpload } from './upload-plan.js';

/** Number of ready builds, and of ready uploads per provider, that are kept. */
const KEPT = 2;
/** Time (seconds) for which only the builder of a build may delete its record; afterwards any builder may. */
const OWNER_GRACE_SECONDS = 3600;

export interface CleanupQuestion {
  readonly image: string;
  readonly config: NodepoolConfig;
  readonly store: ImageStore;
  readonly builderId: string;
  /** Returns true if this builder is reading files of the build. */
  readonly isReading: (build: BuildRef) => boolean;
  /** Unix seconds. */
  readonly now: number;
}

/** The possible cleanup of a build. */
export interface BuildCleanup {
  readonly build: ImageBuild;
  /** The reason, for the log. */
  readonly why: string;
  /** True if its files are on this builder's disk and not being read. */
  readonly files: boolean;
  /** True if its record can be deleted, after the files. */
  readonly record: boolean;
}

/** A build of this builder that keeps its files in some formats only. */
export interface Trimming {
  readonly build: ImageBuild;
  readonly keep: readonly string[];
}

export interface CleanupPlan {
  /** True if this builder is configured to build the image. */
  readonly configured: boolean;
  readonly uploads: readonly { readonly upload: ImageUpload; readonly why: string }[];
  readonly builds: readonly BuildCleanup[];
  readonly trimmed: readonly Trimming[];
  /** Unix seconds of the next time-based deletion; undefined if only a change can cause more work. */
  readonly again: number | undefined;
}

export function planCleanup(question: CleanupQuestion): CleanupPlan {
  const { image, config, store } = question;
  const diskImage = configured(config, image);
  const builds = store.builds(image).flatMap((build) => buildCleanup(question, diskImage, build) ?? []);
  const waiting = builds.filter(({ build }) => build.state === 'deleting' && isGraceRunning(question, build));
  const again = waiting.map(({ build }) => build.state_time + OWNER_GRACE_SECONDS);
  return {
    configured: diskImage !== undefined,
    uploads: uploadsToDelete(question, diskImage),
    builds,
    trimmed: buildsToTrim(question, diskImage),
    again: again.length === 0 ? undefined : Math.min(...again),
  };
}

function configured(config: NodepoolConfig, image: string): DiskImageConfig | undefined {
  const found = config.diskImages.get(image);
  return found?.abstract === false ? found : undefined;
}

function uploadsToDelete(question: CleanupQuestion, diskImage: DiskImageConfig | undefined): CleanupPlan['uploads'] {
  const { image, config, store, builderId } = question;
  const found: { upload: ImageUpload; why: string }[] = [];
  for (const { name: provider, diskImages } of config.providers.values()) {
    const uploads = [...store.uploads({ image, provider })];
    const kept = { count: 0, reviewed: reviewedToKeep(question, uploads, diskImages.get(image)?.tests) };
    // Newest first.
    for (const upload of uploads.reverse()) {
      const build = store.build({ image, id: upload.build });
      // Other builders may have images in their configuration that this one does not know.
      const mayJudge = diskImage !== undefined || build?.builder_id === builderId || build?.state === 'deleting';
      if (!mayJudge) continue;
      const isListed = diskImages.has(image);
      const why = isListed ? reasonToDelete(store, upload, build, kept) : 'the provider does not list the image';
      if (why !== undefined && !isAtWork(store, upload)) found.push({ upload, why });
    }
  }
  return found;
}

/** The uploads to one provider that are kept. */
interface Kept {
  /** Number of usable uploads so far. */
  count: number;
  /** The usable uploads to keep if uploads have reviews; undefined to keep the newest ones. */
  readonly reviewed: ReadonlySet<ImageUpload> | undefined;
}

/**
 * Returns the usable uploads to keep according to their reviews: those in service, those on trial or next in line, and
 * a rejected one that keeps its build from being uploaded again. Returns undefined if there are neither tests nor
 * reviews.
 */
function reviewedToKeep(
  { store, image }: CleanupQuestion,
  uploads: readonly ImageUpload[],
  tests: ImageTests | undefined,
): ReadonlySet<ImageUpload> | undefined {
  const isTested = tests !== undefined && hasImageTests(tests);
  if (!isTested && !uploads.some(({ review }) => review !== undefined && review !== null)) return undefined;
  const { promoted, candidate, unjudged } = standingOf(uploads, isTested);
  const newest = newestReadyBuild(store, image)?.id;
  const barred = uploads.filter((upload) => isBarredUpload(upload) && upload.build === newest);
  // Only the newest of several pins is in effect, but the others say that an operator wants these uploads, too.
  const pinned = uploads.filter(({ review }) => review?.pinned !== undefined);
  const [current, previous] = promoted;
  const kept = [...pinned, current, previous, candidate, unjudged[0], ...barred];
  return new Set(kept.filter((upload) => upload !== undefined));
}

function reasonToDelete(
  store: ImageStore,
  upload: ImageUpload,
  build: ImageBuild | undefined,
  kept: Kept,
): string | undefined {
  if (build?.state === 'deleting') return 'its build is deleted';
  switch (upload.state) {
    case 'ready':
      // Without an image the upload is useless, but its record causes a new upload of the image.
      if (!isUsableUpload(upload))
        return kept.count > 0 ? 'its image does not exist in the cloud, and there is a newer one' : undefined;
      kept.count += 1;
      if (kept.reviewed === undefined) return kept.count > KEPT ? 'there are newer ones' : undefined;
      if (kept.reviewed.has(upload)) return undefined;
      return isBarredUpload(upload) ? 'it is rejected, and there is a newer build' : 'other uploads have superseded it';
    case 'uploading':
      return store.isUploading(upload) ? undefined : 'it was interrupted';
    case 'failed':
      return 'it failed';
    case 'deleting':
      return 'its deletion was started before';
  }
}

function isAtWork(store: ImageStore, upload: ImageUpload): boolean {
  return upload.state === 'uploading' && store.isUploading(upload);
}

function buildCleanup(
  question: CleanupQuestion,
  diskImage: DiskImageConfig | undefined,
  build: ImageBuild,
): BuildCleanup | undefined {
  const { store, builderId, image } = question;
  const own = build.builder_id === builderId;
  if (diskImage === undefined && !own && build.state !== 'deleting') return undefined;
  const why = reasonToRemove(question, diskImage, build);
  if (why === undefined) return undefined;
  const uploads = [...store.uploads({ image, build: build.id })];
  const isRead = question.isReading(build) || uploads.some((upload) => isAtWork(store, upload));
  const record = uploads.length === 0 && (own ? !isRead : !isGraceRunning(question, build));
  return { build, why, files: own && !isRead, record };
}

function reasonToRemove(
  { store, image }: CleanupQuestion,
  diskImage: DiskImageConfig | undefined,
  build: ImageBuild,
): string | undefined {
  switch (build.state) {
    case 'building':
      return store.isBuilding(image) ? undefined : 'it was interrupted';
    case 'failed':
      return 'it failed';
    case 'deleting':
      return 'its deletion was started before';
    case 'ready':
      if (isInService(store, build)) return undefined;
      if (diskImage === undefined) return 'the image is no longer configured';
      return isKept(store, build) ? undefined : 'there are newer ones';
  }
}

/** Returns true if the build is one of the newest. */
function isKept(store: ImageStore, { image, id }: ImageBuild): boolean {
  return readyBuilds(store, image)
    .slice(0, KEPT)
    .some((build) => build.id === id);
}

/** Returns true if a provider launches nodes from the build, or soon will. */
function isInService(store: ImageStore, { image, id }: ImageBuild): boolean {
  return [...store.uploads({ image, build: id })].some((upload) => upload.state === 'ready' || isAtWork(store, upload));
}

/** Returns true if the build is another builder's, which may still return and delete its files. */
function isGraceRunning({ builderId, now }: CleanupQuestion, build: ImageBuild): boolean {
  if (build.builder_id === builderId) return false;
  return build.state !== 'deleting' || now - build.state_time < OWNER_GRACE_SECONDS;
}

function buildsToTrim(question: CleanupQuestion, diskImage: DiskImageConfig | undefined): CleanupPlan['trimmed'] {
  const { image, store, builderId, isReading } = question;
  return readyBuilds(store, image).flatMap((build) => {
    const isRead =
      isReading(build) || [...store.uploads({ image, build: build.id })].some((each) => isAtWork(store, each));
    if (build.builder_id !== builderId || isRead) return [];
    const keep = formatsToKeep(question, diskImage, build);
    return keep === undefined ? [] : [{ build, keep }];
  });
}

/** Returns the formats to keep; undefined for all. */
function formatsToKeep(
  { config, store }: CleanupQuestion,
  diskImage: DiskImageConfig | undefined,
  build: ImageBuild,
): readonly string[] | undefined {
  // Only its uploads need the build's record.
  if (diskImage === undefined || !isKept(store, build)) return [];
  if (!diskImage.deleteAfterUpload) return undefined;
  // Only the newest build is still uploaded.
  if (build.id !== newestReadyBuild(store, build.image)?.id) return diskImage.keepFormats;
  const pending = formatsToUpload(store, config.providers.values(), build);
  return pending && [...diskImage.keepFormats, ...pending];
}
