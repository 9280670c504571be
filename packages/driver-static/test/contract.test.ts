/** The rules of the driver contract that apply to a driver without instances. */

import { join } from 'node:path';
import { describe, it } from '@jest/globals';
import { describeDriverContract, simulatedTime, SimulatedLogins, type DriverFixture } from '@nodepool/driver-kit';
import { staticDriver } from '../src/index.js';
import { everyKey, rack, resolve } from './sections.js';

const fixture: DriverFixture = {
  name: 'static',
  packageFolder: join(__dirname, '..'),
  can: [],
  supplies: true,
  configuration: {
    accepted: [everyKey, rack],
    refused: [
      {
        why: 'a duplicate machine',
        section: { name: 'rack', driver: 'static', pools: [
          { name: 'main', nodes: [{ name: 'a.test', labels: ['arm'] }] },
          { name: 'more', nodes: [{ name: 'b.test', labels: ['arm'] }, { name: 'a.test', labels: 'arm', username: 'zuul' }] },
        ] }, // prettier-ignore
        at: ['pools', 1, 'nodes', 1, 'name'],
      },
    ],
  },
  open() {
    const time = simulatedTime();
    const logins = new SimulatedLogins(time.clock);
    return {
      time,
      logins,
      section: rack,
      site: { settings: { hosts: '127.0.0.1' } },
      makeDriver: () => staticDriver({ resolve }),
      close: () => undefined,
    };
  },
};

describeDriverContract(fixture, { describe, it });
