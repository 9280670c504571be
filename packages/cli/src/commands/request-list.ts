/** `nodepool request-list`: the node requests. */

import { requestList as requestsOf } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { runList, type ListOptions } from '../lists/list-command.js';
import { noteCorrupt } from '../print-list.js';

export function requestList(context: StoreContext, options: ListOptions): Promise<void> {
  const { requests } = context.store;
  const source = {
    make: (now: number) => requestsOf(requests, { columns: 'all', now }),
    name: ['id'],
    filters: { state: 'state', label: 'node_types', provider: 'provider' },
    subscribe: (listener: () => void) => requests.onChange(listener),
    note: () => noteCorrupt(context.out, requests.corrupt()),
  };
  return runList(context, source, options);
}
