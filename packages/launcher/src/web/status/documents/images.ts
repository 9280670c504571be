/** The documents of disk images with their builds and uploads. */

import type { ImageBuild, ImageUpload } from '@nodepool/core';
import type { BuildStatus, ImageDocument, ImagesDocument, ImageStatus, UploadStatus } from '../client/model.js';
import { shortened, type Observed } from '../sources.js';
import type { Parameters } from './parameters.js';
import { SHORT, textOrNull } from './texts.js';

const MAX_BUILDS = 10;
const MAX_UPLOADS = 200;

export function imagesDocument(observed: Observed): ImagesDocument {
  return { images: [...imageNames(observed)].sort().map((name) => imageStatus(observed, name)) };
}

/** Returns undefined if nothing is known of the image. */
export function imageDocument(observed: Observed, { id }: Parameters): ImageDocument | undefined {
  return imageNames(observed).has(id) ? { image: imageStatus(observed, id) } : undefined;
}

function imageNames({ store, status }: Observed): ReadonlySet<string> {
  const configured = [...status.config().diskImages.values()].filter(({ abstract }) => !abstract);
  return new Set([...configured.map(({ name }) => name), ...store.images.images()]);
}

function imageStatus({ store, status }: Observed, name: string): ImageStatus {
  const { images } = store;
  const { diskImages, providers } = status.config();
  const failure = images.lastBuildFailure(name);
  const labels = [...providers.values()].flatMap(({ pools }) =>
    [...pools.values()].flatMap((pool) =>
      [...pool.labels.values()]
        .filter(({ image }) => image.kind === 'diskimage' && image.name === name)
        .map((label) => label.name),
    ),
  );
  return {
    name,
    paused: images.paused(name) || diskImages.get(name)?.pause === true,
    requested: images.buildRequestedAt(name) ?? null,
    builds: images
      .builds(name)
      .slice(-MAX_BUILDS)
      .reverse()
      .map((build) => buildStatus(build, failure?.build === build.id ? failure.message : undefined)),
    uploads: [...images.uploads({ image: name })].slice(-MAX_UPLOADS).reverse().map(uploadStatus),
    lastFailure: failure === undefined ? null : { text: shortened(failure.message), time: failure.time },
    labels: [...new Set(labels)].sort(),
  };
}

function buildStatus({ id, state, state_time: since, builder, formats }: ImageBuild, failure?: string): BuildStatus {
  return {
    ...{ id, state, since, formats },
    builder: shortened(builder ?? '', SHORT),
    failure: textOrNull(failure),
    duration: null,
  };
}

function uploadStatus(upload: ImageUpload): UploadStatus {
  const { provider, build, id, state, state_time: since, progress = null, external_name: name, listed } = upload;
  return {
    ...{ provider, build, id, state, since, progress },
    externalName: textOrNull(name, SHORT),
    failure: listed === false ? 'the cloud does not list the image any more' : null,
  };
}
