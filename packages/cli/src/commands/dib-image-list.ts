/** `nodepool dib-image-list`: the builds of images. */

import { dibImageList as buildsOf } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { noteCorrupt, noteFailedBuilds, printList } from '../print-list.js';

export function dibImageList(context: StoreContext, options: { readonly format: ListFormat }): void {
  const { store, clock, out } = context;
  printList(out, buildsOf(store.images, { columns: 'all', now: clock.now() }), options.format);
  noteFailedBuilds(context);
  noteCorrupt(out, store.images.corrupt());
}
