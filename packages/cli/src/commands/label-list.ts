/** `nodepool label-list`: the labels that registered pools serve. */

import { labelList as labelsOf } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { printList } from '../print-list.js';

export function labelList({ store, out }: StoreContext, options: { readonly format: ListFormat }): void {
  printList(out, labelsOf(store.components, { columns: 'all' }), options.format);
}
