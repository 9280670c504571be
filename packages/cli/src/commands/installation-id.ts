/** `nodepool installation-id`: shows or sets the id that tells the resources of this installation from others. */

import { checkInstallationId } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { CommandError, type StoreContext } from '../command-context.js';

/**
 * Shows or sets the id. Replaces an existing one after a confirmation, unless `force`. Rejects with
 * `InstallationIdError` if the text is not a valid id, and with `CommandError` if the user does not agree.
 */
export async function installationId(
  context: StoreContext,
  { set, force }: { readonly set: string | undefined; readonly force: boolean },
): Promise<void> {
  const { store, out, interrupted } = context;
  const call = { signal: interrupted };
  const before = await store.installation.read(call).catch(undefinedIfMissing);
  if (set === undefined && before === undefined) {
    throw new CommandError('there is no id yet: the first launcher creates one, unless --set writes the former one');
  }
  if (set !== undefined) checkInstallationId(set);
  if (set !== undefined && before !== undefined && set !== before && !force) await confirm(context, before, set);
  if (set !== undefined && set !== before) await store.installation.set(set, call);
  out.print(set ?? before ?? '');
  if (set === undefined || before === undefined || set === before) return;
  out.note(`the id was ${before}; leaked resources with that id are not deleted any more`);
}

async function confirm({ ask, interrupted }: StoreContext, before: string, id: string): Promise<void> {
  if (ask === undefined) {
    throw new CommandError(
      `the id is still ${before}: there is no terminal to confirm the change; --force makes it without asking`,
    );
  }
  const effect =
    `The id is ${before}. Under ${id}, no launcher deletes leaked resources with the id ${before} any more, and ` +
    'deletions are suspended until `nodepool orphans confirm`.\n';
  const answer = await ask(`${effect}Type the present id to confirm: `, interrupted);
  if (answer.trim() !== before) throw new CommandError(`the id is still ${before}: the change was not confirmed`);
}

function undefinedIfMissing(error: unknown): undefined {
  if (!isZooKeeperError(error, 'no-node')) throw error;
  return undefined;
}
