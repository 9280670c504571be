/** Reads the journals of the launchers. */

import { CommandError, type Output } from './command-context.js';
import { askLaunchers, checkLauncherUrl, launcherUrls } from './launchers.js';
import type { OnStore } from './options.js';
import type { ProcessIo } from './process-io.js';

/** Time limit for the journal of a busy day (ms). */
const TIMEOUT_MS = 120_000;

export interface LauncherJournal {
  readonly launcher: string;
  readonly text: string;
}

/**
 * Resolves with the journals of these launchers, or of all registered ones if the list is empty. Rejects with
 * `CommandError` if none can be had; a launcher without one is a note otherwise.
 */
export async function readJournals(
  { out, interrupted }: Pick<ProcessIo, 'out' | 'interrupted'>,
  launchers: readonly string[],
  onStore: OnStore,
): Promise<readonly LauncherJournal[]> {
  const urls = launchers.length > 0 ? launchers.map(checkLauncherUrl) : await registered(onStore);
  const question = { path: '/journal', accept: 'application/jsonl', timeoutMs: TIMEOUT_MS, interrupted } as const;
  const answers = await askLaunchers(urls, question);
  const known = answers.flatMap((answer) => (answer.outcome === 'known' ? [answer] : []));
  const reasons = answers.flatMap((answer) => (answer.outcome === 'known' ? [] : [answer.reason]));
  if (known.length === 0) throw new CommandError(failureText(reasons));
  noteAll(out, reasons);
  return known.map(({ launcher, text }) => ({ launcher, text }));
}

async function registered(onStore: OnStore): Promise<readonly string[]> {
  let urls: readonly string[] = [];
  await onStore(({ store }) => {
    urls = launcherUrls(store.components);
  });
  return urls;
}

function failureText(reasons: readonly string[]): string {
  const what = reasons.length > 0 ? reasons.join('\n') : 'no launcher with a web endpoint is registered';
  return `${what}\nname a web endpoint with --launcher URL, or replay a file with nodepool plan --requests`;
}

function noteAll(out: Output, reasons: readonly string[]): void {
  for (const reason of reasons) out.note(`${reason}; its journal is left out`);
}
