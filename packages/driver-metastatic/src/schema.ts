/** The schema of a provider of this driver; the reference page is generated from it. */

import { providerSchema, type JsonSchema, type ProviderDefaults } from '@nodepool/core';

/** A launch may wait for a slot as long as jobs on a full backing pool take. */
export const PROVIDER_DEFAULTS: ProviderDefaults = {
  bootTimeoutSeconds: 120,
  launchTimeoutSeconds: 86_400,
  rateUnit: 'calls-per-second',
};

/** Defaults of the Python Nodepool. */
export const DEFAULTS = { slots: 1, graceSeconds: 60, minRetentionSeconds: 0 } as const;

/**
 * Maximum number of slots of a backing node. Its record, which names the node and the pool of every slot, then stays
 * below the 1 MB of a znode, also with pool names of 255 characters of four bytes.
 */
export const MAX_SLOTS = 500;

const seconds = (description: string, rest: JsonSchema = {}): JsonSchema => ({
  type: 'integer',
  minimum: 0,
  ...rest,
  description,
});

const hostKeyChecking: JsonSchema = {
  type: 'boolean',
  default: false,
  description: 'If true, the launcher checks login and host keys of the backing node before each use of a slot.',
};

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "metastatic": nodes that are parts of nodes of other labels.',
  compatible: true,
  defaults: PROVIDER_DEFAULTS,
  provider: { without: ['rate'] },
  pool: {
    without: ['use-internal-ip'],
    properties: { 'host-key-checking': hostKeyChecking },
  },
  label: {
    required: ['backing-label'],
    properties: {
      'backing-label': {
        type: 'string',
        minLength: 1,
        description: 'Label of the divided nodes, of any provider.',
      },
      'max-parallel-jobs': {
        type: 'integer',
        minimum: 1,
        maximum: MAX_SLOTS,
        $comment: 'the record of a backing node has all its slots, and ZooKeeper limits a record to 1 MB',
        default: DEFAULTS.slots,
        description: `Slots of a backing node, at most ${MAX_SLOTS}.`,
      },
      'grace-time': seconds('Seconds after which a backing node without nodes is released.', {
        default: DEFAULTS.graceSeconds,
      }),
      'min-retention-time': seconds('Minimum age of a released backing node, in seconds.', {
        default: DEFAULTS.minRetentionSeconds,
      }),
      'max-age': seconds(
        'Age in seconds from which a backing node gets no further nodes and is released without any. Default: unlimited.',
        {
          minimum: 1,
        },
      ),
      'host-key-checking': { type: 'boolean', description: "Default: the pool's." },
    },
  },
});
