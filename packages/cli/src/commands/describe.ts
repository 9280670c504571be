/** `nodepool describe node|request|label|provider NAME`: everything that is known, in one view. */

import type { ListFormat, StoreContext } from '../command-context.js';
import { printDescription, type Description, type DescribedKind } from '../describe/description.js';
import { launcherSections, launcherSummary, type LauncherDocument } from '../describe/launcher-report.js';
import { describeRecord } from '../describe/records.js';
import { askLaunchers, checkLauncherUrl, documentOf, launcherUrls, type LauncherAnswer } from '../launchers.js';
import { parseNodeId } from '../node-id.js';
import { unknownSubject } from '../unknown-subject.js';

/** Launchers answer within milliseconds; a description must not wait for one that hangs. */
const TIMEOUT_MS = 5000;

export interface DescribeOptions {
  /** URLs of web endpoints; if empty, those of the registered launchers. */
  readonly launcher: readonly string[];
  readonly format: ListFormat;
}

/** Prints the description. Rejects with `CommandError` if nothing is known of the subject. */
export async function describe(
  context: StoreContext,
  kind: DescribedKind,
  id: string,
  { launcher, format }: DescribeOptions,
): Promise<void> {
  const { store, config, clock, out, interrupted } = context;
  const name = kind === 'node' ? parseNodeId(id) : id;
  const launchers = launcher.length > 0 ? launcher.map(checkLauncherUrl) : launcherUrls(store.components);
  const answers = await askLaunchers(launchers, {
    path: `/status/v1/${kind}/${encodeURIComponent(name)}`,
    accept: 'application/json',
    timeoutMs: TIMEOUT_MS,
    interrupted,
  });
  const now = clock.now();
  const documents = answers.flatMap((answer) => knownDocument(answer, kind));
  const holder = kind === 'node' ? await store.nodes.holder(name, { signal: interrupted }) : undefined;
  const record = describeRecord({ store, config, now, holder }, kind, name);
  if (record === undefined && documents.length === 0) throw unknownSubject(context, kind, name);
  for (const answer of answers) if (answer.outcome === 'failed') out.note(answer.reason);
  if (launchers.length === 0)
    out.note('no launcher is registered with a web endpoint: timeline and reasons are missing');
  const known: Description = record ?? { kind, name, summary: '', facts: [], sections: [] };
  printDescription(
    out,
    {
      ...known,
      summary: launcherSummary(documents) ?? known.summary,
      sections: [...launcherSections(kind, documents, now), ...known.sections],
    },
    format,
  );
}

/** Returns the document if the launcher knows the subject, which is null if only its history is known. */
function knownDocument(answer: LauncherAnswer, kind: DescribedKind): readonly LauncherDocument[] {
  if (answer.outcome !== 'known') return [];
  const document = documentOf(answer);
  return document[kind] === undefined ? [] : [{ launcher: new URL(answer.launcher).host, document }];
}
