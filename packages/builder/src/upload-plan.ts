/** Decides which builds to upload to which providers. */

import { isUsableUpload, type ImageBuild, type ImageUpload, type ProviderConfig } from '@nodepool/core';
import { isBarredUpload, type ImageStore } from '@nodepool/store';
import { newestReadyBuild } from './build-plan.js';

/**
 * Returns the build to upload to the provider; undefined if there is nothing to do. Only the newest ready build is ever
 * uploaded, and only by a builder that has its files.
 */
export function buildToUpload(
  store: ImageStore,
  provider: ProviderConfig,
  image: string,
  builderId: string,
): ImageBuild | undefined {
  const entry = provider.diskImages.get(image);
  if (entry === undefined || entry.pause || provider.imageFormat === undefined) return undefined;
  const build = newestReadyBuild(store, image);
  if (build?.builder_id !== builderId || !build.formats.includes(provider.imageFormat)) return undefined;
  const place = { image, build: build.id, provider: provider.name };
  if (store.isUploading(place)) return undefined;
  for (const upload of store.uploads(place)) if (isFinal(upload)) return undefined;
  return build;
}

/** Returns true if the build is not uploaded again to the provider, because it is there or is rejected. */
export function isFinal(upload: ImageUpload): boolean {
  return isUsableUpload(upload) || isBarredUpload(upload);
}

/**
 * Returns the formats of providers that list the image and do not have this build yet. Returns undefined if no provider
 * lists the image.
 */
export function formatsToUpload(
  store: ImageStore,
  providers: Iterable<ProviderConfig>,
  { image, id: build }: ImageBuild,
): readonly string[] | undefined {
  const listing = [...providers].filter(({ diskImages }) => diskImages.has(image));
  if (listing.length === 0) return undefined;
  return listing.flatMap(({ name: provider, imageFormat }) => {
    const uploads = [...store.uploads({ image, build, provider })];
    return imageFormat === undefined || uploads.some(isFinal) ? [] : [imageFormat];
  });
}

export interface NameParts {
  readonly image: string;
  readonly upload: string;
  /** Unix seconds. */
  readonly now: number;
}

/** Returns the name of an image in a cloud, by `image-name-format`. Unknown placeholders stay unchanged. */
export function externalNameOf(format: string, { image, upload, now }: NameParts): string {
  const values: Readonly<Record<string, string>> = {
    image_name: image,
    timestamp: String(Math.floor(now)),
    upload_id: upload,
  };
  return format.replace(/\{([a-z_]+)\}/g, (placeholder, name: string) => values[name] ?? placeholder);
}
