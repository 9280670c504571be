/** The state of one disk image with its builds and uploads, as status pages show it. */

import { shortened, type ImageBuild, type ImageUpload, type TrialArm } from '@nodepool/core';
import { standingsOf } from '../images/image-standing.js';
import type { ImageStore } from '../images/image-store.js';

export interface ImageReport {
  readonly name: string;
  readonly paused: boolean;
  /** Time of the pending build request, unix seconds; null if there is none. */
  readonly requested: number | null;
  /** The last builds, newest first; `since` in unix seconds. */
  readonly builds: readonly {
    readonly id: string;
    readonly state: string;
    readonly since: number;
    readonly builder: string;
    readonly formats: readonly string[];
    /** The reason of its failure; null if it did not fail, or if a later build failed as well. */
    readonly failure: string | null;
    /** Whole seconds from the start of the build to its end; null if it has not ended or was imported. */
    readonly duration: number | null;
  }[];
  /** The last uploads, newest first. */
  readonly uploads: readonly {
    readonly provider: string;
    readonly build: string;
    readonly id: string;
    readonly state: string;
    readonly since: number;
    /** Percentage that the cloud has received; null if unknown. */
    readonly progress: number | null;
    readonly externalName: string | null;
    readonly failure: string | null;
    /** The part of the upload in serving requests; null if neither the image nor another upload has tests. */
    readonly review: {
      readonly standing: string;
      readonly since: number;
      readonly by: string;
      readonly reason: string;
      /** The operator who pinned the upload. */
      readonly pinned: string | null;
      /** The counts of its trial. */
      readonly trial: { readonly candidate: TrialArm; readonly current: TrialArm; readonly judged: number } | null;
    } | null;
  }[];
  /** The last failed build, even if a newer one succeeded; `log` is its path on the host of the builder. */
  readonly lastFailure: {
    readonly text: string;
    readonly time: number;
    readonly log: string | null;
    readonly builder: string | null;
  } | null;
}

const MAX_BUILDS = 10;
const MAX_UPLOADS = 200;
const MAX_TEXT = 300;

/** Returns the state of an image. `pause`: the configuration pauses it. */
export function reportImage(images: ImageStore, name: string, pause: boolean): ImageReport {
  const failure = images.lastBuildFailure(name);
  const uploads = [...images.uploads({ image: name })];
  const reviews = reviewsOf(uploads);
  return {
    name,
    paused: pause || images.paused(name),
    requested: images.buildRequestedAt(name) ?? null,
    builds: images
      .builds(name)
      .slice(-MAX_BUILDS)
      .reverse()
      .map((build) => ({
        ...{ id: build.id, state: build.state, since: build.state_time, formats: build.formats },
        builder: shortened(build.builder ?? '', MAX_TEXT),
        failure: failure?.build === build.id ? shortened(failure.message, MAX_TEXT) : null,
        duration: durationOf(build, images.buildBegan({ image: name, id: build.id })),
      })),
    uploads: uploads
      .slice(-MAX_UPLOADS)
      .reverse()
      .map((upload) => {
        const { provider, build, id, state, state_time: since, progress = null, external_name: externalName } = upload;
        return {
          ...{ provider, build, id, state, since, progress },
          externalName: externalName === null ? null : shortened(externalName, MAX_TEXT),
          failure: upload.listed === false ? 'the cloud does not list the image any more' : null,
          review: reviews.get(upload) ?? null,
        };
      }),
    lastFailure:
      failure === undefined
        ? null
        : {
            text: shortened(failure.message, MAX_TEXT),
            time: failure.time,
            log: failure.log,
            builder: failure.builder,
          },
  };
}

type ReviewReport = ImageReport['uploads'][number]['review'];

/** Returns the reviews of the uploads to providers where at least one upload has a review. */
function reviewsOf(uploads: readonly ImageUpload[]): ReadonlyMap<ImageUpload, ReviewReport> {
  const reports = new Map<ImageUpload, ReviewReport>();
  for (const provider of new Set(uploads.map((upload) => upload.provider))) {
    const own = uploads.filter((upload) => upload.provider === provider);
    if (!own.some(({ review }) => review !== undefined && review !== null)) continue;
    for (const [upload, standing] of standingsOf(own, true)) reports.set(upload, reportReview(upload, standing));
  }
  return reports;
}

function reportReview({ review, state_time: uploaded }: ImageUpload, standing: string): ReviewReport {
  const trial = review?.trial;
  return {
    standing,
    since: review?.since ?? uploaded,
    by: shortened(review?.by ?? '', MAX_TEXT),
    reason: shortened(review?.reason ?? '', MAX_TEXT),
    pinned: review?.pinned?.by ?? null,
    trial: trial ? { candidate: trial.candidate, current: trial.current, judged: trial.judged } : null,
  };
}

function durationOf({ state, state_time: ended }: ImageBuild, began: number | undefined): number | null {
  if ((state !== 'ready' && state !== 'failed') || began === undefined || began > ended) return null;
  // The times are from two clocks: ZooKeeper's and the builder's.
  return Math.round(ended - began);
}
