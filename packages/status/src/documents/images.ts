/** The documents of disk images with their builds and uploads. */

import type { ImageDocument, ImagesDocument, ImageStatus } from '../client/model.js';
import { imageNames, imageReport, type ImageSources } from './image-reports.js';
import { oncePerMoment, type Observed } from './sources.js';
import type { Parameters } from './parameters.js';

export function imagesDocument(observed: Observed): ImagesDocument {
  return { images: imagesStatus(observed) };
}

export const imagesStatus = oncePerMoment((observed) =>
  [...imageNames(sourcesOf(observed))].sort().map((name) => imageStatus(observed, name)),
);

/** Returns undefined if nothing is known of the image. */
export function imageDocument(observed: Observed, { id }: Parameters): ImageDocument | undefined {
  return imageNames(sourcesOf(observed)).has(id) ? { image: imageStatus(observed, id) } : undefined;
}

function sourcesOf({ store, status }: Observed): ImageSources {
  return { store, config: status.config };
}

function imageStatus(observed: Observed, name: string): ImageStatus {
  const { providers } = observed.status.config();
  const labels = [...providers.values()].flatMap(({ pools }) =>
    [...pools.values()].flatMap((pool) =>
      [...pool.labels.values()]
        .filter(({ image }) => image.kind === 'diskimage' && image.name === name)
        .map((label) => label.name),
    ),
  );
  return { ...imageReport(sourcesOf(observed), name), labels: [...new Set(labels)].sort() };
}
