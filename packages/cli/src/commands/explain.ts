/**
 * `nodepool explain request|node|label ID`: asks launchers to explain the state of an object, because only they know
 * their decisions. Without a launcher that answers, the records in ZooKeeper explain it.
 */

import { systemClock, type Clock } from '@nodepool/core';
import { CommandError, type ConsoleContext, type ListFormat, type StoreContext } from '../command-context.js';
import { dataOf, printDescription, type DescribedKind } from '../describe/description.js';
import { PLAIN } from '../display.js';
import { describeExplanations } from '../describe/launcher-report.js';
import { describeRecord } from '../describe/records.js';
import { askLaunchers, checkLauncherUrl, documentOf, launcherUrls, type LauncherAnswer } from '../launchers.js';
import { formatData } from '../lists/format-list.js';
import { parseNodeId } from '../node-id.js';
import { unknownSubject } from '../unknown-subject.js';

export type ExplainedKind = Exclude<DescribedKind, 'provider'>;

export interface ExplainContext extends ConsoleContext {
  /** Aborts when the user interrupts the command. */
  readonly interrupted: AbortSignal;
  /** Default: the system's. */
  readonly clock?: Clock;
}

/** Time limit for launchers that the user names, milliseconds. */
const TIMEOUT_MS = 10_000;
/** Time limit for registered launchers, milliseconds; shorter, because ZooKeeper answers otherwise. */
const SHORT_TIMEOUT_MS = 5000;

/** Prints the answers of these launchers. Rejects with `CommandError` if one is unreachable or all lack the object. */
export async function explainByLaunchers(
  context: ExplainContext,
  kind: ExplainedKind,
  id: string,
  { launchers, format }: { readonly launchers: readonly string[]; readonly format: ListFormat },
): Promise<void> {
  const urls = launchers.map(checkLauncherUrl);
  const name = idOf(kind, id);
  const answers = await askAll(context, urls, kind, name, TIMEOUT_MS);
  const failed = answers.find(({ outcome }) => outcome === 'failed');
  if (failed?.outcome === 'failed') {
    throw new CommandError(
      `${failed.reason}; name its web endpoint with --launcher URL, and make sure that it runs without --no-webapp`,
    );
  }
  if (!printKnown(context, kind, name, answers, format)) {
    throw new CommandError(answers.flatMap((answer) => (answer.outcome === 'known' ? [] : [answer.reason])).join('\n'));
  }
}

/**
 * Prints the answers of the registered launchers, or if none answers what ZooKeeper knows. Rejects with `CommandError`
 * if nothing is known of the object.
 */
export async function explain(
  context: StoreContext,
  kind: ExplainedKind,
  id: string,
  { format }: { readonly format: ListFormat },
): Promise<void> {
  const { store, config, clock, out } = context;
  const name = idOf(kind, id);
  const launchers = launcherUrls(store.components);
  const answers = await askAll(context, launchers, kind, name, SHORT_TIMEOUT_MS);
  for (const answer of answers) if (answer.outcome === 'failed') out.note(answer.reason);
  if (printKnown(context, kind, name, answers, format)) return;
  const record = describeRecord({ store, config, now: clock.now() }, kind, name);
  if (record === undefined) throw unknownSubject(context, kind, name);
  out.note(`${whyUnexplained(answers)}: this is what ZooKeeper knows; the decisions of launchers are missing`);
  if (format === 'json' || format === 'yaml') out.print(formatData([dataOf(record)], format));
  else printDescription(out, record, format);
}

function idOf(kind: ExplainedKind, id: string): string {
  return kind === 'node' ? parseNodeId(id) : id;
}

function askAll(
  { interrupted }: ExplainContext,
  launchers: readonly string[],
  kind: ExplainedKind,
  name: string,
  timeoutMs: number,
): Promise<readonly LauncherAnswer[]> {
  return askLaunchers(launchers, {
    path: `/explain/${kind}/${encodeURIComponent(name)}`,
    accept: 'application/json',
    timeoutMs,
    interrupted,
  });
}

function whyUnexplained(answers: readonly LauncherAnswer[]): string {
  if (answers.length === 0) return 'no launcher is registered with a web endpoint';
  return answers.some(({ outcome }) => outcome === 'unknown') ? 'no launcher knows it' : 'no launcher has answered';
}

/** Prints the answers with an explanation. Returns false if there are none. */
function printKnown(
  { out, clock = systemClock }: ExplainContext,
  kind: ExplainedKind,
  name: string,
  answers: readonly LauncherAnswer[],
  format: ListFormat,
): boolean {
  const known = answers.flatMap((answer) =>
    answer.outcome === 'known' ? [{ launcher: new URL(answer.launcher).host, document: documentOf(answer) }] : [],
  );
  if (known.length === 0) return false;
  const documents = known.map(({ document }) => document);
  if (format === 'json' || format === 'yaml') out.print(formatData(documents, format));
  else {
    // Reasons are longer than terminals are wide, and must be complete.
    const display = { ...(out.display?.() ?? PLAIN), size: { columns: Infinity, rows: Infinity } };
    printDescription(out, describeExplanations(kind, name, known, clock.now()), format, display);
  }
  return true;
}
