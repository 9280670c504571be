/** Asks launchers why a request failed. */

import { RequestFailedError } from '@nodepool/requestor';
import type { StoreContext } from './command-context.js';
import { explain } from './commands/explain.js';
import { launcherUrls } from './launchers.js';

const READ_TIMEOUT_MS = 10_000;

/** Prints the answers of the registered launchers to stderr, if the error is that of a failed request. */
export async function noteFailureReasons(context: StoreContext, error: unknown): Promise<void> {
  if (!(error instanceof RequestFailedError)) return;
  const { store, out, interrupted } = context;
  const note = (text: string): void => out.note(text);
  try {
    store.start();
    await store.ready({ timeoutMs: READ_TIMEOUT_MS, signal: interrupted });
    if (launcherUrls(store.components).length === 0) return;
    await explain({ ...context, out: { print: note, note } }, 'request', error.requestId, { format: 'pretty' });
  } catch (failure) {
    note(`the launchers did not explain the failure: ${failure instanceof Error ? failure.message : String(failure)}`);
  }
}
