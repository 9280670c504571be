/** `nodepool image-build IMAGE`: asks for a build of an image. */

import { RefusedError, type StoreContext } from '../command-context.js';
import { configuredImage } from '../image-names.js';

/** Rejects with `RefusedError` when the image is unknown, abstract or paused. */
export async function imageBuild(context: StoreContext, image: string): Promise<void> {
  const { store, out, interrupted } = context;
  const { pause } = configuredImage(context, image);
  if (pause) throw new RefusedError(`image ${image} is paused by the configuration; take \`pause\` out there first`);
  if (store.images.paused(image)) {
    throw new RefusedError(`image ${image} is paused; \`nodepool image-unpause ${image}\` first`);
  }
  const isRequested = store.images.buildRequested(image);
  if (!isRequested) await store.images.requestBuild(image, { signal: interrupted });
  const said = isRequested ? 'has been asked for already' : 'is asked for';
  out.note(`a build of image ${image} ${said}; see \`nodepool image-status\``);
  if (![...store.components.all('builder')].some(({ component }) => component.state === 'running')) {
    out.note('no running builder is registered: nothing is built until one is');
  }
}
