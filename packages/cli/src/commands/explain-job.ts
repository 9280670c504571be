/** `nodepool explain job URL`: why a job of GitHub Actions waits, from GitHub's queue to the node. */

import { printable } from '@nodepool/core';
import {
  explainJobs,
  explainUnknown,
  GITHUB_ROOT,
  runnerPlacesIn,
  runPageOf,
  scaleSetRecordIn,
  type JobExplanation,
  type ScaleSetRecord,
} from '@nodepool/store/github';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { CommandError, UsageError, type ListFormat, type StoreContext } from '../command-context.js';
import { formatData } from '../lists/format-list.js';
import { explain } from './explain.js';

/** Rejects with `CommandError`, with the reasons, if no bridge knows the run. */
export async function explainJob(
  context: StoreContext,
  url: string,
  { format }: { readonly format: ListFormat },
): Promise<void> {
  const page = runPageOf(url);
  if (page === undefined) {
    throw new UsageError(
      `${url} is not the page of a job; its form is https://HOST/OWNER/REPOSITORY/actions/runs/NUMBER`,
    );
  }
  const { store, clock, out } = context;
  const records = await readRecords(context);
  const found = explainJobs(page, records, runnerPlacesIn(store), clock.now());
  if (found.length === 0) throw new CommandError(explainUnknown(records).join('\n'));
  if (format === 'json' || format === 'yaml') {
    out.print(formatData(found, format));
    return;
  }
  for (const each of found) out.print(textOf(each));
  for (const request of new Set(found.flatMap((each) => each.request ?? []))) {
    await explain(context, 'request', request, { format });
  }
}

function textOf({ job, scaleSet, says }: JobExplanation): string {
  return [`job ${job} in scale set ${scaleSet}`, ...says.map((sentence) => `  ${sentence}`)].map(printable).join('\n');
}

async function readRecords({ store, interrupted: signal }: StoreContext): Promise<readonly ScaleSetRecord[]> {
  try {
    const { children } = await store.zooKeeper.children(GITHUB_ROOT, { signal });
    const read = [...children].sort().map((name) => store.zooKeeper.get(`${GITHUB_ROOT}/${name}`, { signal }));
    return (await Promise.all(read)).flatMap(({ data }) => scaleSetRecordIn(data) ?? []);
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return [];
    throw error;
  }
}
