/** Mutations that mistreat images and their launch tests. */

import type { Mutation } from '../mutation.js';
import { ignoringStages, misreading, withoutLaunchTests } from '../mutators.js';

export const IMAGES_MUTATIONS: readonly Mutation[] = [
  {
    name: 'promotes images without a launch test',
    rule: 'I1',
    fault: 'images',
    config: (site) => ({ ...site, imageTests: {} }),
  },
  {
    name: 'hands out nodes of every image',
    rule: 'I1',
    shows: 'which has passed no launch test',
    fault: 'images',
    store: ignoringStages,
  },
  {
    name: 'launches from rejected images',
    rule: 'I2',
    fault: 'images',
    store: ignoringStages,
  },
  {
    name: 'keeps the newest images, whatever their stages are',
    rule: 'I3',
    fault: 'images',
    builderStore: (store) => misreading(store, () => null),
  },
  {
    name: 'deletes the previous image',
    rule: 'I4',
    fault: 'images',
    builderStore: (store) =>
      misreading(store, ({ review }, uploads) => {
        const newest = Math.max(...uploads.map((each) => each.review?.promoted ?? 0));
        return review?.stage === 'promoted' && review.promoted !== newest ? { ...review, stage: 'uploaded' } : review;
      }),
  },
  {
    name: 'tests no image',
    rule: 'I5',
    fault: 'images',
    store: withoutLaunchTests,
  },
];
