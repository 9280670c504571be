/** Prints lists, and says what could not be listed. */

import {
  formatAge,
  nodeListOf,
  printable,
  toJsonObjects,
  toTable,
  unresolvedFailure,
  type CorruptRecord,
  type RecordList,
} from '@nodepool/store';
import type { ListFormat, Output, StoreContext } from './command-context.js';

export function printList(out: Output, list: RecordList, format: ListFormat): void {
  out.print(format === 'json' ? JSON.stringify(toJsonObjects(list), undefined, 2) : toTable(list));
}

/** Records that cannot be read are in no list; nobody would know of them otherwise. */
export function noteCorrupt(out: Output, corrupt: Iterable<CorruptRecord>): void {
  for (const { path, reason } of corrupt) out.note(`not listed: ${path} cannot be read: ${reason}`);
}

/** Notes the failed builds of images that no newer build replaces, with their logs. */
export function noteFailedBuilds({ store, clock, out }: StoreContext): void {
  for (const image of store.images.images()) {
    const failure = unresolvedFailure(store.images, image);
    if (failure === undefined) continue;
    const { time, message, log, builder } = failure;
    const where = log === null ? '' : `; its log is ${log} on ${builder ?? 'an unknown builder'}`;
    const age = formatAge(clock.now() / 1000 - time);
    out.note(printable(`the last build of image ${image} failed ${age} ago: ${message}${where}`));
  }
}

/** Prints the row of a node as it is in ZooKeeper now, without a row if the node is gone. */
export async function printNode({ store, clock, out, interrupted }: StoreContext, id: string): Promise<void> {
  const entry = await store.nodes.read(id, { signal: interrupted });
  const list = nodeListOf(entry === undefined ? [] : [entry], { columns: 'short', now: clock.now() });
  printList(out, list, 'pretty');
}
