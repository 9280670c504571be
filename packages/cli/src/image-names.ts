/** Images, builds and providers as people name them. */

import type { DiskImageConfig, ImageBuild } from '@nodepool/core';
import { didYouMean } from '@nodepool/config';
import { dibImageId } from '@nodepool/store';
import { RefusedError, type StoreContext } from './command-context.js';

/** The configuration of an image that can be built. Throws `RefusedError`, with what was probably meant. */
export function configuredImage({ config }: StoreContext, name: string): DiskImageConfig {
  const image = config.diskImages.get(name);
  if (image === undefined) {
    const known = [...config.diskImages.values()].filter(({ abstract }) => !abstract).map((each) => each.name);
    throw unknown(`the configuration has no disk image ${quoted(name)}`, name, known);
  }
  if (image.abstract) {
    throw new RefusedError(`disk image ${quoted(name)} is abstract: others inherit from it, it is never built`);
  }
  return image;
}

/** Throws `RefusedError` unless the configuration or ZooKeeper knows the image. */
export function checkImage(context: StoreContext, name: string): void {
  const known = [...context.store.images.images()];
  if (!known.includes(name)) configuredImage(context, name);
}

/** A build by what `dib-image-list` calls it. Throws `RefusedError`. */
export function findBuild({ store }: StoreContext, dibId: string): ImageBuild {
  const split = dibId.lastIndexOf('-');
  const ref = { image: dibId.slice(0, Math.max(0, split)), id: dibId.slice(split + 1) };
  const build = store.images.build(ref);
  if (build !== undefined) return build;
  const known = [...store.images.images()].flatMap((image) => store.images.builds(image)).map(dibImageId);
  throw unknown(
    `there is no build ${quoted(dibId)}; \`nodepool dib-image-list\` shows those that there are`,
    dibId,
    known,
  );
}

/** Throws `RefusedError` unless the configuration, a node or an upload knows the provider. */
export function checkProvider({ store, config }: StoreContext, name: string): void {
  const known = new Set([...config.providers.keys(), ...config.brokenProviders.keys()]);
  for (const { provider } of store.images.uploads({})) known.add(provider);
  for (const { node } of store.nodes.all()) if (node.provider !== null) known.add(node.provider);
  if (!known.has(name)) throw unknown(`nothing knows a provider ${quoted(name)}`, name, known);
}

function unknown(what: string, name: string, known: Iterable<string>): RefusedError {
  const suggestion = didYouMean(name, known);
  return new RefusedError(suggestion === undefined ? what : `${what}: ${suggestion}`);
}

function quoted(name: string): string {
  return JSON.stringify(name);
}
