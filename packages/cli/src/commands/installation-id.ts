/** `nodepool installation-id`: shows or sets the id that tells the resources of this installation from others. */

import { isZooKeeperError } from '@nodepool/zookeeper';
import { CommandError, type StoreContext } from '../command-context.js';

/** Shows or sets the id. Rejects with `InstallationIdError` if the text is not a valid id. */
export async function installationId(
  { store, out, interrupted }: StoreContext,
  { set }: { readonly set: string | undefined },
): Promise<void> {
  const call = { signal: interrupted };
  const before = await store.installation.read(call).catch(undefinedIfMissing);
  if (set === undefined && before === undefined) {
    throw new CommandError('there is no id yet: the first launcher creates one, unless --set writes the former one');
  }
  if (set !== undefined && set !== before) await store.installation.set(set, call);
  out.print(set ?? before ?? '');
  if (set === undefined || before === undefined || set === before) return;
  out.note(`the id was ${before}; leaked resources with that id are not deleted any more`);
}

function undefinedIfMissing(error: unknown): undefined {
  if (!isZooKeeperError(error, 'no-node')) throw error;
  return undefined;
}
