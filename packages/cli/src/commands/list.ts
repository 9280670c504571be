/** `nodepool list`: the nodes. */

import { nodeList } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { noteCorrupt, printList } from '../print-list.js';

export interface ListOptions {
  readonly detail: boolean;
  readonly format: ListFormat;
}

export function list({ store, clock, out }: StoreContext, options: ListOptions): void {
  printList(
    out,
    nodeList(store.nodes, { columns: options.detail ? 'all' : 'short', now: clock.now() }),
    options.format,
  );
  noteCorrupt(out, store.nodes.corrupt());
}
