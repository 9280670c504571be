/** `nodepool image-list`: the uploads of images to providers. */

import { imageList as uploadsOf } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { noteCorrupt, printList } from '../print-list.js';

export interface ImageListOptions {
  readonly detail: boolean;
  readonly format: ListFormat;
}

export function imageList({ store, clock, out }: StoreContext, { detail, format }: ImageListOptions): void {
  const columns = detail || format === 'json' ? 'all' : 'short';
  printList(out, uploadsOf(store.images, { columns, now: clock.now() }), format);
  noteCorrupt(out, store.images.corrupt());
}
