/** `nodepool request-list`: the node requests. */

import { requestList as requestsOf } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { noteCorrupt, printList } from '../print-list.js';

export function requestList({ store, out }: StoreContext, options: { readonly format: ListFormat }): void {
  printList(out, requestsOf(store.requests, { columns: 'all' }), options.format);
  noteCorrupt(out, store.requests.corrupt());
}
