/** The disk images that a program knows, from its configuration and from the records. */

import type { NodepoolConfig } from '@nodepool/config';
import { shortened, type ImageBuild, type ImageUpload } from '@nodepool/core';
import { standingsOf, type Store } from '@nodepool/store';
import type { ImageStatus, ReviewStatus } from '../client/model.js';

/** The state of a disk image with its builds and uploads. */
type ImageReport = Omit<ImageStatus, 'labels'>;

const MAX_BUILDS = 10;
const MAX_UPLOADS = 200;
const MAX_TEXT = 300;

export interface ImageSources {
  readonly store: Pick<Store, 'images'>;
  readonly config: () => Pick<NodepoolConfig, 'diskImages'>;
}

export function imageNames({ store, config }: ImageSources): ReadonlySet<string> {
  const configured = [...config().diskImages.values()].filter(({ abstract }) => !abstract);
  return new Set([...configured.map(({ name }) => name), ...store.images.images()]);
}

export function imageReport({ store: { images }, config }: ImageSources, name: string): ImageReport {
  const pause = config().diskImages.get(name)?.pause === true;
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

/** Returns the reviews of the uploads to providers where at least one upload has a review. */
function reviewsOf(uploads: readonly ImageUpload[]): ReadonlyMap<ImageUpload, ReviewStatus> {
  const reports = new Map<ImageUpload, ReviewStatus>();
  for (const provider of new Set(uploads.map((upload) => upload.provider))) {
    const own = uploads.filter((upload) => upload.provider === provider);
    if (!own.some(({ review }) => review !== undefined && review !== null)) continue;
    for (const [upload, standing] of standingsOf(own, true)) reports.set(upload, reportReview(upload, standing));
  }
  return reports;
}

function reportReview({ review, state_time: uploaded }: ImageUpload, standing: string): ReviewStatus {
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
