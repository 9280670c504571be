/** Prints lists, and says what could not be listed. */

import { toJsonObjects, toTable, type CorruptRecord, type RecordList } from '@nodepool/core';
import type { ListFormat, Output } from './command-context.js';

export function printList(out: Output, list: RecordList, format: ListFormat): void {
  out.print(format === 'json' ? JSON.stringify(toJsonObjects(list), undefined, 2) : toTable(list));
}

/** Records that cannot be read are in no list; nobody would know of them otherwise. */
export function noteCorrupt(out: Output, corrupt: Iterable<CorruptRecord>): void {
  for (const { path, reason } of corrupt) out.note(`not listed: ${path} cannot be read: ${reason}`);
}
