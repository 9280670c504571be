/** Sections of `providers` for the tests. */

import type { JsonObject } from '@nodepool/core';

/** Backing nodes with four slots, retained for 10 s. */
export const slots: JsonObject = {
  name: 'meta',
  driver: 'metastatic',
  pools: [
    {
      name: 'main',
      labels: [{ name: 'small', 'backing-label': 'large', 'max-parallel-jobs': 4, 'grace-time': 10 }],
    },
  ],
};

/** A section with every key. */
export const everyKey: JsonObject = {
  name: 'meta',
  driver: 'metastatic',
  priority: 50,
  'max-concurrency': 100,
  'boot-timeout': 30,
  'launch-timeout': 600,
  'launch-retries': 2,
  pools: [
    {
      name: 'main',
      priority: 10,
      'max-servers': 40,
      'node-attributes': { site: 'berlin' },
      'host-key-checking': true,
      labels: [
        {
          name: 'small',
          'backing-label': 'large',
          'max-parallel-jobs': 8,
          'grace-time': 600,
          'min-retention-time': 3600,
          'max-age': 86_400,
          'host-key-checking': false,
        },
      ],
    },
  ],
};
