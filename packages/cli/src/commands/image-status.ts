/** `nodepool image-status`: images that are paused, have a build request, or fail to build. */

import { imageStatus as statusOf } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { noteFailedBuilds, printList } from '../print-list.js';

export interface ImageStatusOptions {
  readonly detail: boolean;
  readonly format: ListFormat;
}

export function imageStatus(context: StoreContext, { detail, format }: ImageStatusOptions): void {
  const { store, clock, out } = context;
  const columns = detail || format === 'json' ? 'all' : 'short';
  printList(out, statusOf(store.images, { columns, now: clock.now() }), format);
  noteFailedBuilds(context);
}
