/** The fixture of the acme driver for the contract tests. */

import { join } from 'node:path';
import type { Adapter, Driver, JsonObject } from '@nodepool/core';
import { ABILITIES, abilitiesExcept, simulatedTime, type DriverFixture } from '../../src/index.js';
import { ACME_HOST, ACME_TOKEN, AcmeCloud } from './acme-cloud.js';
import { acmeAdapter, acmeDriver, type Changes } from './acme-driver.js';
import { idOf } from './acme-machines.js';

/** A provider section with every key of the driver's schema. */
export const everyKey: JsonObject = {
  name: 'acme-1',
  driver: 'acme',
  'max-concurrency': 5,
  priority: 1,
  'launch-retries': 3,
  'launch-timeout': 600,
  'boot-timeout': 60,
  rate: 100,
  'cloud-images': [
    {
      name: 'debian',
      username: 'zuul',
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
  ],
  diskimages: [{ name: 'built', pause: false, meta: { a: 'b' }, 'connection-type': 'ssh', 'connection-port': 22 }],
  pools: [
    {
      name: 'main',
      'max-servers': 10,
      priority: 1,
      'node-attributes': { a: 'b' },
      'host-key-checking': true,
      'use-internal-ip': false,
      labels: [
        { name: 'small', 'cloud-image': 'debian', size: 's', 'host-key-checking': true },
        { name: 'own', diskimage: 'built' },
        { name: 'either', 'cloud-image': 'debian', sizes: ['s', 'm'] },
      ],
    },
  ],
};

const badSize: JsonObject = {
  name: 'acme-1',
  driver: 'acme',
  'cloud-images': [{ name: 'debian' }],
  pools: [{ name: 'main', labels: [{ name: 'small', 'cloud-image': 'debian', size: 'huge' }] }],
};

/**
 * Returns a fixture of this driver that opens a new acme cloud for each case. With `conflicts`, the cloud refuses to
 * delete a server that is being deleted.
 */
export function fixtureOf(
  name: string,
  makeDriver: (cloud: AcmeCloud) => Driver,
  makeAdapter?: (cloud: AcmeCloud) => Adapter,
  conflicts = false,
): DriverFixture {
  return {
    name,
    packageFolder: join(__dirname, 'acme'),
    can: makeAdapter === undefined ? abilitiesExcept('adapter') : ABILITIES,
    configuration: {
      accepted: [everyKey],
      refused: [{ why: 'an unknown size', section: badSize, at: ['pools', 0, 'labels', 0, 'size'] }],
    },
    open() {
      const time = simulatedTime();
      const cloud = new AcmeCloud(time.clock);
      cloud.conflicts = conflicts;
      return {
        time,
        section: everyKey,
        site: { settings: {} },
        makeDriver: () => makeDriver(cloud),
        resources: () =>
          cloud
            .existing()
            .filter(({ foreign }) => !foreign)
            .map(({ id, tags }) => ({ kind: 'instance', externalId: id, tags })),
        addForeignInstances: (count) => cloud.addForeign(count),
        setTimes: ({ bootMs, deleteMs }) => void Object.assign(cloud, { bootMs, deleteMs }),
        setImageTime: (imageMs) => void Object.assign(cloud, { imageMs }),
        reuseIds: () => void Object.assign(cloud, { reusesIds: true }),
        setListLag: (lagMs) => void Object.assign(cloud, { lagMs }),
        breakInstance: (id) => cloud.break(idOf(id)),
        destroyInstance: (id) => cloud.destroy(idOf(id)),
        copyInstance: (id) => cloud.copy(idOf(id)),
        copyImage: (id) => cloud.copyImage(idOf(id)),
        setQuota: ({ instances }) => void Object.assign(cloud, { limit: instances }),
        plan: (fault) => cloud.plan(fault),
        clearFaults: () => cloud.clearFaults(),
        secrets: () => [ACME_TOKEN],
        http: {
          host: ACME_HOST,
          moveCalls: () => void Object.assign(cloud, { isMoved: true }),
          redirectTo: (url) => void Object.assign(cloud, { redirectsTo: url }),
          redirectCreations: () => cloud.plan({ operation: 'create', kind: 'redirect-status', skip: 0 }),
          answerEndlessly: () => cloud.plan({ operation: 'any', kind: 'endless', skip: 0 }),
          throttleUntil: (retryAfterMs) => cloud.plan({ operation: 'any', kind: 'throttle', skip: 0, retryAfterMs }),
        },
        replaceCredentials: () => void Object.assign(cloud, { hasNewCredentials: true }),
        imageLabel: { pool: 'main', label: 'own' },
        machineTypeLabel: { pool: 'main', label: 'either' },
        close: () => undefined,
        ...(makeAdapter === undefined ? {} : { makeAdapter: () => makeAdapter(cloud) }),
      };
    },
  };
}

/** The driver on the state-machine framework. */
export function acmeFixture(changes: Changes = {}, name = 'acme', conflicts = false): DriverFixture {
  return fixtureOf(
    name,
    (cloud) => acmeDriver(cloud, changes),
    (cloud) => acmeAdapter(cloud, changes),
    conflicts,
  );
}
