/** `nodepool installation-id`: shows or sets the id that tells the resources of this installation from others. */

import { errorCodeOf, reasonOf } from '@nodepool/core';
import { checkInstallationId } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { CommandError, UsageError, type StoreContext } from '../command-context.js';
import { confirm } from '../confirm.js';

/**
 * Shows or sets the id. Replaces an existing one after a confirmation, unless `force`. Rejects with `UsageError` if the
 * text is not a valid id, and with `CommandError` if the user does not agree.
 */
export async function installationId(
  context: StoreContext,
  { set, force }: { readonly set: string | undefined; readonly force: boolean },
): Promise<void> {
  if (force && set === undefined) throw new UsageError('--force has no effect without --set');
  if (set !== undefined) checkId(set);
  const { store, out, interrupted } = context;
  const call = { signal: interrupted };
  const before = await store.installation.read(call).catch(undefinedIfMissing);
  if (set === undefined && before === undefined) {
    throw new CommandError('there is no id yet: the first launcher creates one, unless --set writes the former one');
  }
  if (set !== undefined && set !== before) {
    if (before !== undefined) await confirmChange(context, before, set, force);
    await store.installation.set(set, call);
  }
  out.print(set ?? before ?? '');
  if (set === undefined || before === undefined || set === before) return;
  out.note(`the id was ${before}; leaked resources with that id are not deleted any more`);
}

function checkId(text: string): void {
  try {
    checkInstallationId(text);
  } catch (error) {
    throw errorCodeOf(error) === 'installation-id' ? new UsageError(`--set: ${reasonOf(error)}`) : error;
  }
}

async function confirmChange(context: StoreContext, before: string, id: string, force: boolean): Promise<void> {
  const effect =
    `The id is ${before}. Under ${id}, no launcher deletes leaked resources with the id ${before} any more, and ` +
    'deletions are suspended until `nodepool orphans confirm`.';
  await confirm(context, { effect, expected: before, refusal: `the id is still ${before}` }, { force });
}

function undefinedIfMissing(error: unknown): undefined {
  if (!isZooKeeperError(error, 'no-node')) throw error;
  return undefined;
}
