/** Drivers that violate the rules about identity, unknown outcomes and resumption. */

import {
  ConfigurationError,
  DriverError,
  NotFoundError,
  sleep,
  TransientError,
  type Advance,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { Changes } from '../acme-driver.js';
import {
  when,
  deletions,
  creations,
  changed,
  completeWhenUnlisted,
  trustsSavedDeletion,
  providers,
  ignoresUnknown,
  createsAgain,
  withUniqueIds,
} from '../changed-drivers.js';
import type { FaultKind } from '../../../src/index.js';
import type { Defect } from './defect.js';

const UNSURE = { settleRounds: 1, settleMs: 0 };

/** Returns a driver whose list is empty if a page of it gets the fault. */
function emptyListAfter(fault: FaultKind, says: RegExp): Defect {
  const changes: Changes = {
    client: ({ page }) => ({
      page: (from, call) =>
        page(from, call).catch((error: unknown) => {
          if (error instanceof DriverError && error.message === `acme: ${fault}`) return { items: [], next: null };
          throw error;
        }),
    }),
  };
  return { changes, says };
}

export const outcomesDefects: Readonly<Record<string, Defect>> = {
  'tags.from-creation': {
    changes: {
      client: ({ create, tag }) => ({
        async create(tags, zone, image, call) {
          const id = await create({}, zone, image, call);
          await tag(id, tags, call);
          return id;
        },
      }),
    },
    says: /the tag nodepool_node_id of the instance/,
  },
  'outcome.create-lost': {
    changes: createsAgain(),
    says: /instances after a creation whose answer was lost: 2 instead of 1/,
  },
  'outcome.create-lost-lag': { changes: { listingDeadline: UNSURE }, says: /only one listing without/ },
  'outcome.create-refused': {
    changes: { explain: when('refuse', new TransientError('500', { outcome: 'applied' })) },
    says: /the outcome of "500"/,
  },
  'outcome.create-hangs': {
    changes: {
      client: ({ create }, cloud) => ({
        create: (...args) => Promise.race([create(...args), sleep(cloud.clock, 30_000).then(() => create(...args))]),
      }),
    },
    says: /did not fail/,
  },
  'outcome.any-call': { changes: createsAgain(), says: /more than one instance/ },
  'outcome.delete-lost': { changes: { explain: when('lose-answer', new ConfigurationError('cut')) }, says: /cut/ },
  'outcome.delete-refused': { changes: { explain: when('refuse', new ConfigurationError('500')) }, says: /500/ },
  'outcome.delete-proxy-404': {
    changes: { explain: when('proxy-404', new NotFoundError('404')) },
    says: /something is left/,
  },
  'outcome.proxy-200': emptyListAfter('proxy-200', /a page of a proxy is empty/),
  'outcome.proxy-json': emptyListAfter('proxy-json', /JSON of a proxy is empty/),
  'faults.launch': {
    changes: { explain: when('fail-after', new TransientError('500', { outcome: 'not-applied' })) },
    says: /the outcome is "not-applied", although an instance exists: 500/,
  },
  'faults.deletion': {
    changes: { explain: when('conflict', new NotFoundError('409')) },
    says: /after a deletion whose call \d got the fault "conflict", something is left/,
  },
  'faults.listing': emptyListAfter('not-found', /page 1 got the fault "not-found": 0 instead of 7/),
  'lag.launch': { changes: { listingDeadline: UNSURE }, says: /vanished/ },
  'lag.delete': {
    changes: withUniqueIds(deletions((machine) => completeWhenUnlisted(machine))),
    says: /something is left/,
  },
  'lag.delete-unknown': { changes: providers(ignoresUnknown), says: /something is left/ },
  'resume.launch': {
    changes: creations((make) => make(null, null)),
    says: /another instance|more than one|the external id/,
  },
  'resume.delete': { changes: trustsSavedDeletion(), says: /something is left/ },
  'resume.machine-create': { changes: creations((make) => make(null, null)), says: /these instances exist/ },
  'resume.machine-delete': { changes: trustsSavedDeletion(), says: /something is left/ },
  'resume.data': {
    changes: creations((make, saved, externalId) => {
      const machine = make(saved, externalId);
      return changed(machine, { save: () => ({ since: new Date(0) as unknown as string }) });
    }),
    says: /changes in a round trip through JSON/,
  },
  'resume.stop-keeps': {
    changes: {
      adapter: (_adapter, { cloud }) => ({ stop: () => cloud.existing().forEach(({ id }) => cloud.destroy(id)) }),
    },
    says: /what exists after the stop/,
  },
  'machine.life': {
    changes: creations((make, saved, externalId) => {
      const machine = make(saved, externalId);
      return Object.create(machine, {
        state: { get: () => (machine.state === 'start' ? 'idle' : machine.state) },
      }) as StateMachine;
    }),
    says: /a new machine/,
  },
  'machine.advance': {
    changes: creations((make, saved, externalId, { client }) => {
      const machine = make(saved, externalId);
      const advance = (call: MachineCall): Advance => {
        if (machine.state === 'creating') void client().create({}, 'north', 'debian', call);
        return machine.advance(call);
      };
      return changed(machine, { advance });
    }),
    says: /called twice at every step/,
  },
};
