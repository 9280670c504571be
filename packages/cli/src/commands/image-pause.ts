/** `nodepool image-pause IMAGE`, `image-unpause IMAGE`: stops or resumes the builds of an image. */

import type { StoreContext } from '../command-context.js';
import { checkImage } from '../image-names.js';

/** Pauses the image. Rejects with `CommandError` if it is unknown. */
export async function imagePause(context: StoreContext, image: string): Promise<void> {
  checkImage(context, image);
  await context.store.images.pause(image, { signal: context.interrupted });
  context.out.note(`image ${image} is paused: it is not built until \`nodepool image-unpause ${image}\``);
}

/** Unpauses the image; notes if the configuration still pauses it. Rejects with `CommandError` if it is unknown. */
export async function imageUnpause(context: StoreContext, image: string): Promise<void> {
  checkImage(context, image);
  const wasPaused = context.store.images.paused(image);
  await context.store.images.unpause(image, { signal: context.interrupted });
  if (context.config.diskImages.get(image)?.pause === true) {
    context.out.note(`image ${image} stays paused: the configuration pauses it; remove \`pause\` from it`);
    return;
  }
  context.out.note(wasPaused ? `image ${image} is unpaused` : `image ${image} was not paused`);
}
