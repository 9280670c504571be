/** `nodepool list`, `request-list`, `label-list`, `image-list`, `dib-image-list` and `image-status`. */

import { dibImageList, imageList, imageStatus, labelList, nodeList, requestList } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { runList, type ListOptions, type ListSource } from '../lists/list-command.js';
import { noteCorrupt, noteFailedBuilds, noteOutages } from '../print-list.js';

const LISTS = {
  list(context) {
    const { nodes } = context.store;
    return {
      make: (now) => nodeList(nodes, { columns: 'all', now }),
      name: ['id'],
      shortData: true,
      filters: { state: 'state', label: 'label', provider: 'provider' },
      subscribe: (listener) => nodes.onChange(listener),
      note: () => {
        noteCorrupt(context.out, nodes.corrupt());
        noteOutages(context);
      },
    };
  },
  'request-list'({ store: { requests }, out }) {
    return {
      make: (now) => requestList(requests, { columns: 'all', now }),
      name: ['id'],
      filters: { state: 'state', label: 'node_types', provider: 'provider' },
      subscribe: (listener) => requests.onChange(listener),
      note: () => noteCorrupt(out, requests.corrupt()),
    };
  },
  'label-list'({ store: { components } }) {
    return {
      make: () => labelList(components, { columns: 'all' }),
      name: ['label'],
      filters: { label: 'label', provider: 'provider' },
      subscribe: (listener) => components.onChange(listener),
    };
  },
  'image-list'({ store: { images }, out }) {
    return {
      make: (now) => imageList(images, { columns: 'all', now }),
      name: ['image', 'id', 'provider', 'upload_id'],
      filters: { state: 'state', provider: 'provider', image: 'image' },
      subscribe: (listener) => images.onChange(listener),
      note: () => noteCorrupt(out, images.corrupt()),
    };
  },
  'dib-image-list'(context) {
    const { images } = context.store;
    return {
      make: (now) => dibImageList(images, { columns: 'all', now }),
      name: ['id'],
      filters: { state: 'state', image: 'image' },
      subscribe: (listener) => images.onChange(listener),
      note: () => {
        noteFailedBuilds(context);
        noteCorrupt(context.out, images.corrupt());
      },
    };
  },
  'image-status'(context) {
    const { images } = context.store;
    return {
      make: (now) => imageStatus(images, { columns: 'all', now }),
      name: ['image'],
      filters: { image: 'image' },
      subscribe: (listener) => images.onChange(listener),
      note: () => noteFailedBuilds(context),
    };
  },
} satisfies Record<string, (context: StoreContext) => ListSource>;

export type ListName = keyof typeof LISTS;

export function list(context: StoreContext, name: ListName, options: ListOptions): Promise<void> {
  return runList(context, LISTS[name](context), options);
}
