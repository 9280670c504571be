/** `nodepool image-build IMAGE`: requests a build of an image. */

import { CommandError, type StoreContext } from '../command-context.js';
import { configuredImage } from '../image-names.js';

/**
 * Requests the build. A request that waits after a failed build is replaced: builders build at once for a new one.
 * Rejects with `CommandError` if the image is unknown, abstract or paused by the configuration.
 */
export async function imageBuild(context: StoreContext, image: string): Promise<void> {
  const { store, out, interrupted } = context;
  const { pause } = configuredImage(context, image);
  if (pause) throw new CommandError(`image ${image} is paused by the configuration; remove \`pause\` from it first`);
  const wasRequested = store.images.buildRequested(image);
  const isServed = wasRequested && store.images.isBuilding(image);
  if (!isServed) await store.images.requestBuild(image, { signal: interrupted, renew: true });
  const said = isServed ? 'was already requested and is running' : `is requested${wasRequested ? ' again' : ''}`;
  out.note(`a build of image ${image} ${said}; see \`nodepool image-status\``);
  if (store.images.paused(image)) {
    out.note(`image ${image} is paused: it is built after \`nodepool image-unpause ${image}\``);
  }
  // The Python builder registers as "stopped" for its whole life, so its state is not checked.
  const builders = [...store.components.all('builder')].map(({ component }) => component);
  if (builders.length === 0) out.note('no builder is registered: nothing is built until one starts');
  else if (builders.every(({ images }) => images?.includes(image) === false)) {
    const hosts = builders.map(({ hostname }) => hostname).join(', ');
    out.note(`no registered builder builds image ${image} (${hosts}): add it to the configuration of one`);
  }
}
