/** Creates the section of disk images with their builds and uploads. */

import { isUsableUpload, type ImageUpload } from '@nodepool/core';
import type { ImageStatus, UploadStatus } from './client/status.js';
import { groupBy, shortened, type Observed } from './sources.js';

const MAX_BUILDS = 3;

/** Returns the status of configured and existing images, sorted by name. */
export function imagesStatus({ store, status }: Observed): ImageStatus[] {
  const configured = [...status.config().diskImages.values()].filter(({ abstract }) => !abstract);
  const names = new Set([...configured.map(({ name }) => name), ...store.images.images()]);
  return [...names].sort().map((name) => ({
    name,
    paused: store.images.paused(name) || configured.some((image) => image.name === name && image.pause),
    requested: store.images.buildRequestedAt(name) ?? null,
    builds: store.images
      .builds(name)
      .slice(-MAX_BUILDS)
      .reverse()
      .map(({ id, state, state_time: since, builder, formats }) => ({
        id,
        state,
        since,
        builder: shortened(builder ?? '', 80),
        formats,
      })),
    uploads: uploadsStatus([...store.images.uploads({ image: name })]),
  }));
}

/** Returns for each provider the upload in use and the outcome of newer ones. */
function uploadsStatus(uploads: readonly ImageUpload[]): UploadStatus[] {
  const byProvider = groupBy(uploads, ({ provider }) => provider);
  return [...byProvider].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, each]) => shownOf(each));
}

function shownOf(uploads: readonly ImageUpload[]): UploadStatus[] {
  const newestFirst = uploads.toSorted((a, b) => b.state_time - a.state_time);
  const serving = newestFirst.findIndex(isUsableUpload);
  const newer = serving < 0 ? newestFirst : newestFirst.slice(0, serving);
  // Only the newest of several newer uploads in the same state is shown.
  const shown = newer.filter(({ state }, index) => newer.findIndex((other) => other.state === state) === index);
  const inService = newestFirst[serving];
  return [...(inService === undefined ? [] : [inService]), ...shown].map(
    ({ provider, state, state_time: since, progress = null }) => ({ provider, state, since, progress }),
  );
}
