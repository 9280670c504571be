/** `nodepool list`: the nodes. */

import { nodeList } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { runList, type ListOptions } from '../lists/list-command.js';
import { noteCorrupt, noteOutages } from '../print-list.js';

export function list(context: StoreContext, options: ListOptions): Promise<void> {
  const { nodes } = context.store;
  const source = {
    make: (now: number) => nodeList(nodes, { columns: 'all', now }),
    name: ['id'],
    shortData: true,
    filters: { state: 'state', label: 'label', provider: 'provider' },
    subscribe: (listener: () => void) => nodes.onChange(listener),
    note: () => {
      noteCorrupt(context.out, nodes.corrupt());
      noteOutages(context);
    },
  };
  return runList(context, source, options);
}
