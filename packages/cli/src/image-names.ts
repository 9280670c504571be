import type { DiskImageConfig, ImageBuild } from '@nodepool/core';
import { didYouMean } from '@nodepool/config';
import { dibImageId } from '@nodepool/store';
import { CommandError, type StoreContext } from './command-context.js';

/** Returns the configuration of a buildable image. Throws `CommandError`, with a suggestion for a misspelt name. */
export function configuredImage({ config }: StoreContext, name: string): DiskImageConfig {
  const image = config.diskImages.get(name);
  if (image === undefined) {
    const known = [...config.diskImages.values()].filter(({ abstract }) => !abstract).map((each) => each.name);
    throw unknown(`the configuration has no disk image ${quoted(name)}`, name, known);
  }
  if (image.abstract) {
    throw new CommandError(`disk image ${quoted(name)} is abstract: it is never built, only inherited`);
  }
  return image;
}

/** Throws `CommandError` unless the configuration or ZooKeeper knows the image. */
export function checkImage(context: StoreContext, name: string): void {
  const known = [...context.store.images.images()];
  if (!known.includes(name)) configuredImage(context, name);
}

/** Returns the build with this name in `dib-image-list`. Throws `CommandError`. */
export function findBuild({ store }: StoreContext, dibId: string): ImageBuild {
  const split = dibId.lastIndexOf('-');
  const ref = { image: dibId.slice(0, Math.max(0, split)), id: dibId.slice(split + 1) };
  const build = store.images.build(ref);
  if (build !== undefined) return build;
  const known = [...store.images.images()].flatMap((image) => store.images.builds(image)).map(dibImageId);
  throw unknown(
    `there is no build ${quoted(dibId)}; \`nodepool dib-image-list\` lists the existing ones`,
    dibId,
    known,
  );
}

/** Throws `CommandError` unless the configuration, a node or an upload knows the provider. */
export function checkProvider({ store, config }: StoreContext, name: string): void {
  const known = new Set([...config.providers.keys(), ...config.brokenProviders.keys()]);
  for (const { provider } of store.images.uploads({})) known.add(provider);
  for (const { node } of store.nodes.all()) if (node.provider !== null) known.add(node.provider);
  if (!known.has(name))
    throw unknown(`there is no provider ${quoted(name)} in the configuration or in ZooKeeper`, name, known);
}

/** Throws `CommandError` if only records know the provider, so that its cloud cannot be asked. */
export function checkConfigured({ config }: StoreContext, name: string): void {
  if (config.providers.has(name) || config.brokenProviders.has(name)) return;
  throw new CommandError(`provider ${name} is not configured: its cloud cannot be listed`);
}

function unknown(what: string, name: string, known: Iterable<string>): CommandError {
  const suggestion = didYouMean(name, known);
  return new CommandError(suggestion === undefined ? what : `${what}: ${suggestion}`);
}

function quoted(name: string): string {
  return JSON.stringify(name);
}
