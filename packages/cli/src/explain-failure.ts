import { RequestFailedError } from '@nodepool/requestor';
import { CommandError, type StoreContext } from './command-context.js';
import { explain } from './commands/explain.js';
import { launcherUrls } from './launchers.js';

const READ_TIMEOUT_MS = 10_000;

/**
 * Prints the answers of the registered launchers to stderr, if the error is that of a failed request. Resolves with
 * the error of the command, which then is shorter.
 */
export async function explainFailure(context: StoreContext, error: unknown): Promise<unknown> {
  if (!(error instanceof RequestFailedError)) return error;
  const { store, out, interrupted } = context;
  const note = (text: string): void => out.note(text);
  try {
    store.start();
    await store.ready({ timeoutMs: READ_TIMEOUT_MS, signal: interrupted });
    if (launcherUrls(store.components).length === 0) return error;
    await explain({ ...context, out: { print: note, note } }, 'request', error.requestId, { format: 'pretty' });
    return new CommandError(shortMessage(error), { cause: error });
  } catch (failure) {
    note(`the launchers did not explain the failure: ${failure instanceof Error ? failure.message : String(failure)}`);
    return error;
  }
}

function shortMessage({ requestId, declinedBy: { length } }: RequestFailedError): string {
  const why = length === 0 ? 'every launch failed' : `${length === 1 ? '1 pool' : `${length} pools`} declined it`;
  return `request ${requestId} failed: ${why}; the reasons are above`;
}
