/**
 * `nodepool installation-id`: shows or sets the id that distinguishes the resources of this installation from those of
 * others.
 */

import type { StoreContext } from '../command-context.js';

/** Shows or sets the id. Rejects with `InstallationIdError` if the text is not a valid id. */
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
