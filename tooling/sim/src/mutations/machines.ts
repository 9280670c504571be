/** Mutations that mistreat machines of a static driver. */

import type { Mutation } from '../mutation.js';
import { NODE, changingMachines, rewriting } from '../mutators.js';
import { overlay } from '@nodepool/simulated-process';
import { HOST_KEY, RACK } from '../site.js';

export const MACHINES_MUTATIONS: readonly Mutation[] = [
  {
    name: 'registers machines without checking the registrations of other launchers',
    rule: 'M1',
    // The reads take time, in which other launchers plan the same registrations.
    client: (zooKeeper) =>
      overlay(zooKeeper, {
        transaction: async (ops, options) => {
          const supply = ops.find(({ type, path }) => type === 'set' && path.startsWith('/nodepool/supply/'));
          if (supply === undefined) return zooKeeper.transaction(ops, options);
          for (let read = 0; read < 300; read += 1) await zooKeeper.get(supply.path);
          const unchecked = ops.map((op) =>
            op === supply && op.type === 'set' ? { type: op.type, path: op.path, data: op.data } : op,
          );
          return zooKeeper.transaction(unchecked, options);
        },
      }),
  },
  {
    name: 'does not register a machine',
    rule: 'M2',
    driver: changingMachines((machines) => machines.slice(1)),
  },
  {
    name: 'changes machines that are allocated to a request',
    rule: 'M3',
    writes: rewriting(NODE, (node) =>
      node['provider'] === RACK && typeof node['allocated_to'] === 'string' ? { ...node, username: 'other' } : node,
    ),
  },
  {
    name: 'treats every machine as usable',
    rule: 'M4',
    fault: 'all',
    firstSeed: 26,
    driver: changingMachines((machines) =>
      machines.map((machine) => ({ ...machine, check: () => Promise.resolve({ hostKeys: [HOST_KEY] }) })),
    ),
  },
];
