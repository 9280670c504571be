/** `nodepool image-status`: which images are paused, and which are to be built. */

import { imageStatus as statusOf } from '@nodepool/core';
import type { ListFormat, StoreContext } from '../command-context.js';
import { printList } from '../print-list.js';

export function imageStatus({ store, clock, out }: StoreContext, options: { readonly format: ListFormat }): void {
  printList(out, statusOf(store.images, { columns: 'all', now: clock.now() }), options.format);
}
