/** The rules of the driver contract. */

import { join } from 'node:path';
import { describe, it } from '@jest/globals';
import {
  describeDriverContract,
  simulatedTime,
  SimulatedBackingNodes,
  SimulatedLogins,
  type DriverFixture,
} from '@nodepool/driver-kit';
import { driver } from '../src/index.js';
import { everyKey, slots } from './sections.js';

const label = { name: 'small', 'backing-label': 'large', 'max-parallel-jobs': 4 };

function sectionWith(...labels: readonly object[]): DriverFixture['configuration']['accepted'][number] {
  return { name: 'meta', driver: 'metastatic', pools: [{ name: 'main', labels: labels.map((each) => ({ ...each })) }] };
}

const fixture: DriverFixture = {
  name: 'metastatic',
  packageFolder: join(__dirname, '..'),
  can: [],
  exempt: {
    'calls.reported': 'the driver makes no remote calls',
    'ids.attempts':
      'the external id is the id of the node, as other launchers expect; and an attempt frees its slot before the next one',
    'leak.offered': 'the driver frees slots without a node itself, see `backed.orphans`',
    'lookalike.node': 'a slot has no other provider than the one that holds it',
  },
  backed: { slots: 4, graceMs: 10_000 },
  configuration: {
    accepted: [slots, everyKey],
    refused: [
      {
        why: 'a max-age below the min-retention-time',
        section: sectionWith({ ...label, 'max-age': 10, 'min-retention-time': 20 }),
        at: ['pools', 0, 'labels', 0, 'max-age'],
      },
      {
        why: 'labels with the same backing-label that differ',
        section: sectionWith(label, { ...label, name: 'tiny', 'max-parallel-jobs': 8 }),
        at: ['pools', 0, 'labels', 1],
      },
      {
        why: 'a label that is its own backing-label',
        section: sectionWith({ ...label, name: 'large' }),
        at: ['pools', 0, 'labels', 0, 'backing-label'],
      },
    ],
  },
  open() {
    const time = simulatedTime();
    const logins = new SimulatedLogins(time.clock);
    const backing = new SimulatedBackingNodes(time.clock);
    return { time, logins, backing, section: slots, makeDriver: () => driver, close: () => undefined };
  },
};

describeDriverContract(fixture, { describe, it });
