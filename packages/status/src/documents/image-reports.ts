/** The disk images that a program knows, from its configuration and from the records. */

import type { NodepoolConfig } from '@nodepool/config';
import { reportImage, type ImageReport, type Store } from '@nodepool/store';

export interface ImageSources {
  readonly store: Pick<Store, 'images'>;
  readonly config: () => Pick<NodepoolConfig, 'diskImages'>;
}

export function imageNames({ store, config }: ImageSources): ReadonlySet<string> {
  const configured = [...config().diskImages.values()].filter(({ abstract }) => !abstract);
  return new Set([...configured.map(({ name }) => name), ...store.images.images()]);
}

export function imageReport({ store, config }: ImageSources, name: string): ImageReport {
  return reportImage(store.images, name, config().diskImages.get(name)?.pause === true);
}
