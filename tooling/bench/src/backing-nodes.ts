/** A site with nodes on backing nodes, for a comparison with nodes of the example driver. */

import { LABEL, type EnvironmentOptions } from './environment.js';

const BACKING_LABEL = 'backing';
/** Slots of a backing node. */
const SLOTS = 8;
/** Time for which a backing node without nodes is retained, seconds. */
const GRACE_S = 1;

/** An example cloud without delays, and slots of its nodes with the label of the measurements. */
export const BACKING_NODES: Pick<EnvironmentOptions, 'site' | 'sections'> = {
  site: { labels: [LABEL, BACKING_LABEL] },
  sections: [
    {
      name: 'cloud',
      driver: 'example',
      'cloud-images': [{ name: 'image', username: 'zuul' }],
      pools: [{ name: 'main', 'host-key-checking': false, labels: [{ name: BACKING_LABEL, 'cloud-image': 'image' }] }],
    },
    {
      name: 'slots',
      driver: 'metastatic',
      pools: [
        {
          name: 'main',
          labels: [{ name: LABEL, 'backing-label': BACKING_LABEL, 'max-parallel-jobs': SLOTS, 'grace-time': GRACE_S }],
        },
      ],
    },
  ],
};
