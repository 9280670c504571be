/** The documents of disk images with their builds and uploads. */

import { reportImage } from '@nodepool/store';
import type { ImageDocument, ImagesDocument, ImageStatus } from '../client/model.js';
import { oncePerMoment, type Observed } from './sources.js';
import type { Parameters } from './parameters.js';

export function imagesDocument(observed: Observed): ImagesDocument {
  return { images: imagesStatus(observed) };
}

export const imagesStatus = oncePerMoment((observed) =>
  [...imageNames(observed)].sort().map((name) => imageStatus(observed, name)),
);

/** Returns undefined if nothing is known of the image. */
export function imageDocument(observed: Observed, { id }: Parameters): ImageDocument | undefined {
  return imageNames(observed).has(id) ? { image: imageStatus(observed, id) } : undefined;
}

function imageNames({ store, status }: Observed): ReadonlySet<string> {
  const configured = [...status.config().diskImages.values()].filter(({ abstract }) => !abstract);
  return new Set([...configured.map(({ name }) => name), ...store.images.images()]);
}

function imageStatus({ store, status }: Observed, name: string): ImageStatus {
  const { diskImages, providers } = status.config();
  const labels = [...providers.values()].flatMap(({ pools }) =>
    [...pools.values()].flatMap((pool) =>
      [...pool.labels.values()]
        .filter(({ image }) => image.kind === 'diskimage' && image.name === name)
        .map((label) => label.name),
    ),
  );
  const pause = diskImages.get(name)?.pause === true;
  return { ...reportImage(store.images, name, pause), labels: [...new Set(labels)].sort() };
}
