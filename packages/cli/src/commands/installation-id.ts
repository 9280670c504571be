/** `nodepool installation-id`: shows the id that tells the resources of this installation from those of others, or sets it. */

import type { StoreContext } from '../command-context.js';

/** Rejects with `InstallationIdError` if the text cannot be an id. */
export async function installationId(
  { store, out, interrupted }: StoreContext,
  { set }: { readonly set: string | undefined },
): Promise<void> {
  const call = { signal: interrupted };
  const before = await store.installation.read(call);
  if (set === undefined || set === before) {
    out.print(before);
    return;
  }
  await store.installation.set(set, call);
  out.print(set);
  out.note(`the id was ${before}; leaked resources with that id are not deleted any more`);
}
