/** `nodepool dib-image-list`: the builds of images. */

import { dibImageList as buildsOf } from '@nodepool/core';
import type { ListFormat, StoreContext } from '../command-context.js';
import { noteCorrupt, printList } from '../print-list.js';

export function dibImageList({ store, clock, out }: StoreContext, options: { readonly format: ListFormat }): void {
  printList(out, buildsOf(store.images, { columns: 'all', now: clock.now() }), options.format);
  noteCorrupt(out, store.images.corrupt());
}
