/** `nodepool image-status`: the disk images that have records: pauses, requested builds, and failed builds. */

import { imageStatus as statusOf } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { runList, type ListOptions } from '../lists/list-command.js';
import { noteFailedBuilds } from '../print-list.js';

export function imageStatus(context: StoreContext, options: ListOptions): Promise<void> {
  const { images } = context.store;
  const source = {
    make: (now: number) => statusOf(images, { columns: 'all', now }),
    name: ['image'],
    filters: { image: 'image' },
    subscribe: (listener: () => void) => images.onChange(listener),
    note: () => noteFailedBuilds(context),
  };
  return runList(context, source, options);
}
