/** What a label waits for whose disk image has no upload that is ready. */

import type { ImageStore } from '@nodepool/store';

/** For people; changes only with the state of the image. */
export function imageWait(images: ImageStore, image: string, provider: string): string {
  const builds = images.builds(image);
  const ready = builds.findLast(({ state }) => state === 'ready');
  if (ready !== undefined) {
    const place = { image, build: ready.id, provider };
    return images.isUploading(place)
      ? `build ${ready.id} is being uploaded`
      : `build ${ready.id} waits for ${ready.builder ?? 'its builder'} to upload it`;
  }
  const building = builds.findLast(({ state }) => state === 'building');
  if (building !== undefined && images.isBuilding(image))
    return `it is being built by ${building.builder ?? 'a builder'}`;
  if (images.paused(image)) return `it was never built and is paused; \`nodepool image-unpause ${image}\` ends that`;
  if (builds.some(({ state }) => state === 'failed')) return 'its last build failed; the log of the builder says why';
  return images.buildRequested(image) ? 'its build is asked for' : 'no builder has built it';
}
