/** Drivers that violate the rules about existing machines. */

import { AbortedError, DriverError } from '@nodepool/core';
import type { Defect } from './defect.js';

export const supplyDefects: Readonly<Record<string, Defect>> = {
  'supply.declared': {
    supplier: { machine: { labels: ['other'] } },
    says: /labels of the machines of pool main/,
  },
  'supply.check': {
    supplier: { machine: { check: () => Promise.resolve({ hostKeys: [] }) } },
    says: /the check of a machine that is silent did not fail/,
  },
  'supply.abort': {
    supplier: { checkCall: (call) => ({ ...call, deadline: call.deadline + 60_000 }) },
    says: /a deadline in 2000 ms ended after/,
  },
  'supply.delete': {
    supplier: { withdraws: true },
    says: /machines after the deletion of a node/,
  },
  'supply.launch': {
    supplier: {
      provider: {
        getRequestHandler: () => ({
          launch: () => Promise.reject(new DriverError('unexpected', 'it may exist', { cause: new AbortedError('x') })),
          launchesComplete: () => true,
        }),
      },
    },
    says: /the outcome of the launch/,
  },
};
