/** `nodepool label-list`: the labels that registered pools serve. */

import { labelList as labelsOf } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { runList, type ListOptions } from '../lists/list-command.js';

export function labelList(context: StoreContext, options: ListOptions): Promise<void> {
  const { components } = context.store;
  const source = {
    make: () => labelsOf(components, { columns: 'all' }),
    name: ['label'],
    filters: { label: 'label', provider: 'provider' },
    subscribe: (listener: () => void) => components.onChange(listener),
  };
  return runList(context, source, options);
}
