/** `nodepool image-list`: the uploads of images to providers. */

import { imageList as uploadsOf } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { runList, type ListOptions } from '../lists/list-command.js';
import { noteCorrupt } from '../print-list.js';

export function imageList(context: StoreContext, options: ListOptions): Promise<void> {
  const { images } = context.store;
  const source = {
    make: (now: number) => uploadsOf(images, { columns: 'all', now }),
    name: ['image', 'id', 'provider', 'upload_id'],
    filters: { state: 'state', provider: 'provider', image: 'image' },
    subscribe: (listener: () => void) => images.onChange(listener),
    note: () => noteCorrupt(context.out, images.corrupt()),
  };
  return runList(context, source, options);
}
