/** Fixtures of the contract tests: the driver, a cloud to test it on, and controls for that cloud. */

import { join } from 'node:path';
import type { JsonObject } from '@nodepool/core';
import {
  simulatedTime,
  type Ability,
  type DriverFixture,
  type FaultKind,
  type FaultyOperation,
  type PlannedFault,
  type TestCloud,
} from '@nodepool/driver-kit';
import { myCloudDriver } from '../src/index.js';
import { idOf } from '../src/instance.js';
import { TinyCloud, type TinyFault, type TinyOperation } from '../src/tiny-cloud.js';

/** Small, so that the tests cover several pages. */
const PAGE_SIZE = 5;

export const section: JsonObject = {
  name: 'test',
  driver: 'mycloud',
  project: 'trial',
  'cloud-images': [{ name: 'debian', username: 'zuul' }],
  pools: [{ name: 'main', labels: [{ name: 'small', 'cloud-image': 'debian', cores: 2, ram: 2048 }] }],
};

const FAULTS: Readonly<Partial<Record<FaultKind, TinyFault>>> = {
  refuse: 'internal',
  'fail-after': 'fail-after',
  'lose-answer': 'lose-answer',
  hang: 'hang',
  throttle: 'throttled',
  auth: 'unauthorized',
  quota: 'quota',
  capacity: 'no-capacity',
  invalid: 'invalid',
  conflict: 'conflict',
  'not-found': 'not-found',
  'proxy-404': 'proxy-404',
};

const OPERATIONS = ['any', 'create', 'delete', 'list'] as const;
const FAULTS_OF_ALL = ['refuse', 'fail-after', 'lose-answer', 'hang', 'throttle', 'auth', 'conflict'] as const;
const FAULTS_OF_CREATE = ['quota', 'capacity', 'invalid'] as const;

const can: readonly Ability[] = [
  'resources',
  'foreign-instances',
  'times',
  'list-lag',
  'reused-ids',
  'break-instance',
  'destroy-instance',
  'quota',
  ...OPERATIONS.flatMap((operation) => FAULTS_OF_ALL.map((fault): Ability => `fault:${operation}:${fault}`)),
  ...FAULTS_OF_CREATE.map((fault): Ability => `fault:create:${fault}`),
  'fault:list:not-found',
  // A cloud in this process has no proxy whose page could be taken for an answer (`proxy-200`, `proxy-json`).
  'fault:any:proxy-404',
];

/** Creates an empty cloud for one test. */
export function openTestCloud(): TestCloud & { readonly cloud: TinyCloud } {
  const time = simulatedTime();
  const cloud = new TinyCloud(time.clock, { pageSize: PAGE_SIZE });
  return {
    cloud,
    time,
    section,
    makeDriver: () => myCloudDriver({ cloud }),
    resources: () =>
      cloud
        .existing()
        .filter(({ tags }) => 'nodepool_node_id' in tags)
        .map(({ id, tags }) => ({ kind: 'instance', externalId: id, tags })),
    addForeignInstances: (count) => {
      for (let index = 0; index < count; index += 1) {
        cloud.make({ name: `other-${index}`, image: 'debian', cores: 0, ram: 0, tags: {} });
      }
    },
    setTimes: ({ bootMs, deleteMs }) => void Object.assign(cloud.settings, { bootMs, deleteMs }),
    reuseIds: () => void Object.assign(cloud.settings, { reusesIds: true }),
    setListLag: (ms) => void Object.assign(cloud.settings, { listLagMs: ms }),
    breakInstance: (id) => {
      cloud.break(idOf(id));
    },
    destroyInstance: (id) => {
      cloud.destroy(idOf(id));
    },
    setQuota: ({ instances }) => void Object.assign(cloud.settings, { limits: { instances, cores: 1000 } }),
    plan: (fault) => {
      plan(cloud, fault);
    },
    clearFaults: () => {
      cloud.clearFaults();
    },
    close: () => undefined,
  };
}

/** The driver, as required by the contract tests. */
export const fixture: DriverFixture = {
  name: 'mycloud',
  packageFolder: join(__dirname, '..', '..'),
  can,
  configuration: {
    // Together, these sections contain every key of the schema.
    accepted: [
      {
        ...section,
        'max-concurrency': 3,
        priority: 50,
        'launch-retries': 2,
        'launch-timeout': 600,
        'boot-timeout': 30,
        rate: 5,
        'cloud-images': [
          {
            name: 'debian',
            image: 'debian-12',
            username: 'zuul',
            'python-path': '/usr/bin/python3',
            'shell-type': 'sh',
            'connection-type': 'ssh',
            'connection-port': 2222,
          },
        ],
        pools: [
          {
            name: 'main',
            priority: 1,
            'max-servers': 10,
            'node-attributes': { rack: 'a' },
            'host-key-checking': false,
            'use-internal-ip': false,
            labels: [{ name: 'small', 'cloud-image': 'debian', cores: 1, ram: 512, 'host-key-checking': true }],
          },
        ],
      },
    ],
    refused: [],
  },
  open: openTestCloud,
};

function plan(cloud: TinyCloud, { operation, kind, skip }: PlannedFault): void {
  const fault = FAULTS[kind];
  if (fault === undefined) throw new Error(`the tiny cloud has no fault "${kind}"`);
  cloud.failNext(operationOf(operation), fault, skip);
}

function operationOf(operation: FaultyOperation): TinyOperation | 'any' {
  const known = OPERATIONS.find((each) => each === operation);
  if (known === undefined) throw new Error(`the tiny cloud has no operation "${operation}" to fail`);
  return known;
}
