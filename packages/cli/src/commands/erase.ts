/** `nodepool erase PROVIDER`: deletes all records of a provider from ZooKeeper; its resources in the cloud remain. */

import { CommandError, type StoreContext } from '../command-context.js';
import { confirm } from '../confirm.js';
import { checkProvider } from '../image-names.js';

/**
 * Deletes the records, after a confirmation unless `force`. Rejects with `CommandError` if the user does not agree, or,
 * after the rest is deleted, if some records are locked.
 */
export async function erase(
  context: StoreContext,
  provider: string,
  options: { readonly force: boolean },
): Promise<void> {
  checkProvider(context, provider);
  const { store, out } = context;
  const uploads = [...store.images.uploads({ provider })];
  const nodes = [...store.nodes.ofProvider(provider)];
  if (uploads.length === 0 && nodes.length === 0) {
    await removeEmpty(context, provider);
    out.note(`ZooKeeper has no records of provider ${provider}`);
    return;
  }
  const what = `${uploads.length} uploads and ${nodes.length} nodes of provider ${provider}`;
  warnIfServed(context, provider);
  const effect = `The records of ${what} will be erased. Instances and images in the cloud stay, and no launcher will delete them.`;
  await confirm(context, { effect, expected: provider, refusal: 'nothing was erased' }, options);
  const locked: string[] = [];
  for (const upload of uploads) {
    const name = `upload ${upload.id} of build ${upload.build} of image ${upload.image}`;
    if (!(await eraseRecord(await store.images.tryLockUpload(upload, signalOf(context))))) locked.push(name);
  }
  for (const { id } of nodes) {
    const handle = await store.nodes.tryLock(id, signalOf(context));
    if (handle === undefined || !(await handle.remove())) locked.push(`node ${id}`);
  }
  const erased = uploads.length + nodes.length - locked.length;
  if (locked.length === 0) locked.push(...(await removeEmpty(context, provider)));
  out.note(`${erased} records are erased; resources in the cloud of ${provider} remain`);
  if (locked.length > 0) {
    throw new CommandError(
      `these records are locked by other programs and remain; try again later:\n  ${locked.join('\n  ')}`,
    );
  }
}

/**
 * Deletes the empty znodes of the provider below builds: the Python Nodepool lists such builds as those of the
 * provider. Resolves with the builds whose uploads are locked.
 */
async function removeEmpty(context: StoreContext, provider: string): Promise<readonly string[]> {
  const { images } = context.store;
  const locked: string[] = [];
  for (const image of images.images()) {
    for (const { id: build } of images.builds(image)) {
      if (await images.removeProvider({ image, build, provider }, signalOf(context))) continue;
      locked.push(`build ${build} of image ${image}, which is being uploaded`);
    }
  }
  return locked;
}

interface Removable {
  remove(): Promise<boolean>;
  release(): Promise<void>;
}

async function eraseRecord(handle: Removable | undefined): Promise<boolean> {
  if (handle === undefined) return false;
  if (await handle.remove()) return true;
  await handle.release();
  return false;
}

function warnIfServed({ store, out }: StoreContext, provider: string): void {
  const launchers = [...store.components.pools()].filter((pool) => pool.provider_name === provider);
  if (launchers.length === 0) return;
  const hosts = [...new Set(launchers.map(({ hostname }) => hostname))].join(', ');
  out.note(
    `provider ${provider} is still served by ${hosts}: remove it from the configuration there, or new records are created`,
  );
}

function signalOf({ interrupted }: StoreContext): { readonly signal: AbortSignal } {
  return { signal: interrupted };
}
