/** `nodepool dib-image-delete ID`: marks a build for deletion by a builder, with its files and all its uploads. */

import { dibImageId } from '@nodepool/store';
import { CommandError, type StoreContext } from '../command-context.js';
import { findBuild } from '../image-names.js';

/** Marks the build. Rejects with `CommandError` if it does not exist or is in progress. */
export async function dibImageDelete(context: StoreContext, dibId: string): Promise<void> {
  const { store, out, interrupted } = context;
  const build = findBuild(context, dibId);
  const id = dibImageId(build);
  if (build.state === 'building') throw new CommandError(`build ${id} is in progress; wait until it has ended`);
  const handle = await store.images.tryLockBuild(build, { change: { state: 'deleting' }, signal: interrupted });
  if (handle === undefined) {
    throw new CommandError(`build ${id} is locked by a builder at the moment; see \`nodepool dib-image-list\``);
  }
  await handle.release();
  const uploads = [...store.images.uploads({ image: build.image, build: build.id })];
  const providers = [...new Set(uploads.map(({ provider }) => provider))].sort();
  const also = providers.length === 0 ? '' : `, after its uploads to ${providers.join(', ')}`;
  out.note(`build ${id} and its files on ${build.builder ?? 'its builder'} will be deleted${also}`);
}
