/** `nodepool image-pause IMAGE`, `image-unpause IMAGE`: keeps an image from being built, or no longer. */

import type { StoreContext } from '../command-context.js';
import { checkImage } from '../image-names.js';

/** Rejects with `RefusedError` when nobody knows the image. */
export async function imagePause(context: StoreContext, image: string): Promise<void> {
  checkImage(context, image);
  await context.store.images.pause(image, { signal: context.interrupted });
  context.out.note(`image ${image} is paused: it is not built until \`nodepool image-unpause ${image}\``);
}

/** Says so if the configuration still pauses the image. Rejects with `RefusedError` if the image is unknown. */
export async function imageUnpause(context: StoreContext, image: string): Promise<void> {
  checkImage(context, image);
  await context.store.images.unpause(image, { signal: context.interrupted });
  if (context.config.diskImages.get(image)?.pause === true) {
    context.out.note(`image ${image} stays paused: the configuration says so; take \`pause\` out there`);
    return;
  }
  context.out.note(`image ${image} is not paused`);
}
