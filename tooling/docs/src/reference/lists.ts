/** Generates the reference of the web endpoint's lists and their fields with the functions of the endpoint itself. */

import {
  dibImageList,
  imageList,
  imageStatus,
  labelList,
  nodeList,
  requestList,
  type ImageStore,
  type RecordList,
} from '@nodepool/store';
import { code } from './markdown.js';

const noImages: Pick<
  ImageStore,
  'images' | 'builds' | 'uploads' | 'paused' | 'buildRequestedAt' | 'isBuilding' | 'lastBuildFailure'
> = {
  images: () => [],
  builds: () => [],
  uploads: () => [],
  paused: () => false,
  buildRequestedAt: () => undefined,
  isBuilding: () => false,
  lastBuildFailure: () => undefined,
};

/** Returns the paths of the lists with their fields. */
export function listsReference(): string {
  const options = { columns: 'all', now: 0 } as const;
  const lists: readonly (readonly [path: string, list: RecordList])[] = [
    ['/node-list', nodeList({ all: () => [], get: () => undefined }, options)],
    ['/request-list', requestList({ all: () => [] }, options)],
    ['/label-list', labelList({ pools: () => [] }, options)],
    ['/image-list', imageList(noImages, options)],
    ['/dib-image-list', dibImageList(noImages, options)],
    ['/image-status', imageStatus(noImages, options)],
  ];
  return lists
    .map(([path, { columns }]) => `- ${code(path)}: ${columns.map(({ field }) => code(field)).join(', ')}`)
    .join('\n');
}
