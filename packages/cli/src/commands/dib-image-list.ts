/** `nodepool dib-image-list`: the builds of images. */

import { dibImageList as buildsOf } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { runList, type ListOptions } from '../lists/list-command.js';
import { noteCorrupt, noteFailedBuilds } from '../print-list.js';

export function dibImageList(context: StoreContext, options: ListOptions): Promise<void> {
  const { images } = context.store;
  const source = {
    make: (now: number) => buildsOf(images, { columns: 'all', now }),
    name: ['id'],
    filters: { state: 'state', image: 'image' },
    subscribe: (listener: () => void) => images.onChange(listener),
    note: () => {
      noteFailedBuilds(context);
      noteCorrupt(context.out, images.corrupt());
    },
  };
  return runList(context, source, options);
}
