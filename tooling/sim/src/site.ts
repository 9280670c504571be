/** The simulated site: providers, pools, labels and limits, and the launcher configurations for them. */

import type { DiskImageConfig, Driver, JsonObject, RandomSource } from '@nodepool/core';
import type { FairShares, NodepoolConfig, ReadySettings } from '@nodepool/config';
import { exampleDriver, type ExampleCloud } from '@nodepool/driver-example';
import { driver as metastaticDriver } from '@nodepool/driver-metastatic';
import { staticDriver } from '@nodepool/driver-static';
import { between, oneOf } from './chance.js';
import { faultyDriver, type DriverFaults } from './faulty-driver.js';

export interface SitePool {
  readonly name: string;
  readonly labels: readonly string[];
  readonly maxServers: number;
  readonly priority?: number;
  /** Only for the driver `static`. */
  readonly machines?: readonly SiteMachine[];
}

/** A static machine. */
export interface SiteMachine {
  readonly name: string;
  readonly labels: readonly string[];
  readonly slots: number;
  readonly username?: string;
}

export interface SiteProvider {
  readonly name: string;
  /** Default: `example`. */
  readonly driver?: 'example' | 'faulty' | 'static' | 'metastatic';
  readonly pools: readonly SitePool[];
  readonly maxConcurrency?: number;
}

/** The configuration of one launcher. */
export interface Site {
  readonly providers: readonly SiteProvider[];
  /** `min-ready` by label. */
  readonly minReady: Readonly<Record<string, number>>;
  /** By label: so many more ready nodes than nodes in use, at most `MAX_READY`. */
  readonly spare?: Readonly<Record<string, number>>;
  /** Instance limits by tenant. */
  readonly tenants: Readonly<Record<string, number>>;
  /** Weights of tenants. Default: only priorities count. */
  readonly shares?: Readonly<Record<string, number>>;
  /** The disk image that all labels of cloud providers use. Default: an image of the cloud. */
  readonly diskImage?: DiskImageConfig;
  /** The tests of uploads of the disk image. Default: `IMAGE_TESTS`. */
  readonly imageTests?: JsonObject;
}

/** `ready.max` of the labels with spare nodes. */
const MAX_READY = 6;

export const LABELS = ['small', 'large', 'other'] as const;
/** New name of the label `other` after a rename. */
const RENAMED = 'other-2';

/** Labels of static machines. */
export const MACHINE_LABELS = ['iron', 'steel'] as const;

/** The host key of every machine, as long as nothing changes it. */
export const HOST_KEY = 'ssh-ed25519 AAAA';

/** The provider of static machines. */
export const RACK = 'rack';

/** The user of machines that name none. */
export const DEFAULT_USER = 'zuul';

const MACHINES: readonly SiteMachine[] = [
  { name: '192.0.2.1', labels: ['iron', 'steel'], slots: 2 },
  { name: '192.0.2.2', labels: ['iron'], slots: 1 },
  { name: '192.0.2.3', labels: ['iron'], slots: 2 },
];

/** `max-wait` of all labels (ms). */
export const MAX_WAIT_MS = 1_500_000;

/** Tenants of requests; the second one has a limit. */
export const TENANTS = ['tenant', 'bounded'] as const;

/** Three pools of two providers with overlapping labels, a pool whose driver may be defective, and machines. */
export const WHOLE_SITE: Site = {
  providers: [
    {
      name: 'alpha',
      pools: [
        { name: 'main', labels: ['small', 'large'], maxServers: 8 },
        { name: 'spare', labels: ['small'], maxServers: 3, priority: 200 },
      ],
    },
    { name: 'beta', pools: [{ name: 'main', labels: ['small', 'large', 'other'], maxServers: 6 }], maxConcurrency: 5 },
    { name: 'gamma', driver: 'faulty', pools: [{ name: 'main', labels: ['small'], maxServers: 3, priority: 150 }] },
    {
      name: RACK,
      driver: 'static',
      pools: [{ name: 'main', labels: MACHINE_LABELS, maxServers: 100, machines: MACHINES }],
    },
  ],
  minReady: { small: 1 },
  tenants: { bounded: 5 },
};

/** Two pools of one provider, limited only by the cloud's quota and a tenant's limit. */
export const SITE_AT_QUOTA: Site = {
  providers: [
    {
      name: 'alpha',
      pools: [
        { name: 'main', labels: ['small', 'large'], maxServers: 30 },
        { name: 'spare', labels: ['small', 'other'], maxServers: 30 },
      ],
    },
  ],
  minReady: { small: 1 },
  tenants: { bounded: 4 },
};

/** The provider whose cloud refuses creations. */
export const CAPACITY_PROVIDER = 'alpha';
/** Labels of the provider that always has capacity. */
export const SPARE_LABELS: ReadonlySet<string> = new Set(['small', 'other']);

/** A provider whose cloud refuses, and one of lower priority that has capacity for all requests. */
export const SITE_WITH_SPARE: Site = {
  providers: [
    { name: CAPACITY_PROVIDER, pools: [{ name: 'main', labels: ['small', 'large'], maxServers: 200 }] },
    { name: 'beta', pools: [{ name: 'main', labels: [...SPARE_LABELS], maxServers: 200, priority: 200 }] },
  ],
  minReady: {},
  tenants: {},
};

/** A provider that keeps several nodes ready, of one label more while more are in use. */
export const SITE_WITH_SUPPLY: Site = {
  providers: [{ name: 'alpha', pools: [{ name: 'main', labels: LABELS, maxServers: 200 }] }],
  minReady: { small: 4, large: 2 },
  spare: { other: 1 },
  tenants: {},
};

/** The provider of nodes that are slots of backing nodes, with their label and that of the backing nodes. */
export const META = 'meta';
export const SLOT_LABEL = 'slot';
const BACKING_LABEL = 'large';
/** Slots of a backing node, and the time for which one without nodes is retained (s). */
export const SLOTS = 3;
const GRACE_S = 20;

/** Nodes on backing nodes, and other nodes of the backing label. */
export const SITE_WITH_SLOTS: Site = {
  providers: [
    { name: 'alpha', pools: [{ name: 'main', labels: ['small', BACKING_LABEL], maxServers: 40 }] },
    { name: META, driver: 'metastatic', pools: [{ name: 'main', labels: [SLOT_LABEL], maxServers: 60 }] },
  ],
  minReady: {},
  tenants: {},
};

/** A pool that is too small for two tenants. */
export const SITE_WITH_SHARES: Site = {
  providers: [{ name: 'alpha', pools: [{ name: 'main', labels: LABELS, maxServers: 6 }] }],
  minReady: {},
  tenants: {},
  shares: { tenant: 1, bounded: 1 },
};

/** Half-life of past use (ms), short compared with a run. */
const HALF_LIFE_MS = 30_000;
/** The disk image of the site with images, which must pass all tests. */
export const DISK_IMAGE: DiskImageConfig = {
  name: 'debian',
  abstract: false,
  parent: undefined,
  formats: [],
  keepFormats: [],
  deleteAfterUpload: false,
  rebuildAgeMs: Infinity,
  release: undefined,
  buildTimeoutMs: 600_000,
  elements: ['debian-minimal'],
  envVars: {},
  pause: false,
  username: 'zuul',
  pythonPath: 'auto',
  shellType: undefined,
  dibCmd: 'disk-image-create',
  metadata: {},
  bootTest: { timeoutMs: 60_000, memory: 512, cpus: 1, kvm: true, command: undefined, commandTimeoutMs: 60_000 },
};
const IMAGE_TESTS: JsonObject = { 'launch-test': true, canary: { share: '30%', nodes: 6 } };

/** Two providers whose nodes are launched from built images with tests. */
export const SITE_WITH_IMAGES: Site = {
  providers: [
    { name: 'alpha', pools: [{ name: 'main', labels: LABELS, maxServers: 12 }] },
    { name: 'beta', pools: [{ name: 'main', labels: LABELS, maxServers: 8 }] },
  ],
  minReady: { small: 1 },
  tenants: {},
  diskImage: DISK_IMAGE,
};

/** The cloud's instance limit at the site at its quota. */
export const QUOTA = 6;

/** Returns the number of ready nodes that a label should have. */
export function wantedReady({ minReady, spare = {} }: Site, label: string, inUse: number): number {
  const { [label]: nodes } = spare;
  const wanted = Math.max(minReady[label] ?? 0, nodes === undefined ? 0 : inUse + nodes);
  return nodes === undefined ? wanted : Math.min(wanted, MAX_READY);
}

/** Returns a possible next configuration: removed providers, changed limits, a renamed label. */
export function changedSite(random: RandomSource): Site {
  const renames = random.next() < 0.1;
  const providers = WHOLE_SITE.providers
    .filter(() => random.next() < 0.8)
    .map((provider) => ({ ...provider, pools: provider.pools.map((pool) => changedPool(pool, renames, random)) }));
  if (providers.length === 0) return WHOLE_SITE;
  return { ...WHOLE_SITE, providers, minReady: random.next() < 0.7 ? WHOLE_SITE.minReady : { small: 2, other: 1 } };
}

function changedPool(pool: SitePool, renames: boolean, random: RandomSource): SitePool {
  const maxServers = random.next() < 0.3 ? between(random, 0, 10) : pool.maxServers;
  const labels = renames ? pool.labels.map((label) => (label === 'other' ? RENAMED : label)) : pool.labels;
  if (pool.machines !== undefined)
    return { ...pool, machines: pool.machines.flatMap((each) => changedMachine(each, random)) };
  return { ...pool, maxServers, labels };
}

/** Returns the machine as it may be configured next; an empty list if it is removed. */
function changedMachine(machine: SiteMachine, random: RandomSource): readonly SiteMachine[] {
  const changes: readonly Partial<SiteMachine>[] = [
    { slots: between(random, 0, 4) },
    { username: 'ci' },
    { labels: ['iron', 'steel'] },
    {},
  ];
  return random.next() < 0.1 ? [] : [{ ...machine, ...oneOf(random, changes) }];
}

/** Few retries and short times, so that a run reaches their limits. */
const PROVIDER_OPTIONS = { 'launch-retries': 2, 'launch-timeout': 300, 'boot-timeout': 60 } as const;

/** Returns the parsed configuration of such a site. Throws if the site is invalid. */
export function nodepoolConfig(
  site: Site,
  cloud: ExampleCloud,
  faults: DriverFaults,
  spoil: (driver: Driver) => Driver = (driver) => driver,
): NodepoolConfig {
  const example = spoil(exampleDriver({ cloud }));
  const machines = spoil(staticDriver());
  const slots = spoil(metastaticDriver);
  const drivers = new Map<string, Driver>([
    ['example', example],
    ['faulty', faultyDriver(example, faults)],
    ['static', machines],
    ['metastatic', slots],
  ]);
  const problems: string[] = [];
  const { diskImage } = site;
  const diskImages = new Map(diskImage === undefined ? [] : [[diskImage.name, diskImage]]);
  const labels = [...LABELS, RENAMED, ...MACHINE_LABELS, SLOT_LABEL];
  const context = {
    diskImages,
    labels: new Set<string>(labels),
    problem: (path: readonly (string | number)[], { expected }: { readonly expected: string }) => {
      problems.push(`${path.join('.')}: ${expected}`);
    },
  };
  const configs = site.providers.map((provider) => {
    if (provider.driver === 'static') return machines.getProviderConfig(rackSection(provider), context);
    if (provider.driver === 'metastatic') return slots.getProviderConfig(metaSection(provider), context);
    const image = diskImage && { name: diskImage.name, ...(site.imageTests ?? IMAGE_TESTS) };
    return example.getProviderConfig(section(provider, image), context);
  });
  if (problems.length > 0) throw new Error(`the simulated site is wrong: ${problems.join('; ')}`);
  return {
    webapp: { port: 0, listenAddress: '127.0.0.1' },
    elementsDir: undefined,
    imagesDir: undefined,
    buildLogDir: '',
    buildLogRetention: 7,
    zookeeper: { servers: [], chroot: '', tls: undefined, sessionTimeoutMs: 10_000 },
    labels: new Map(
      labels.map((name) => [
        name,
        {
          ...{ name, minReady: site.minReady[name] ?? 0, ready: readyOf(site, name) },
          ...{ maxReadyAgeMs: Infinity, maxWaitMs: MAX_WAIT_MS },
        },
      ]),
    ),
    maxHoldAgeMs: Infinity,
    diskImages,
    providers: new Map(configs.map((config) => [config.name, config])),
    brokenProviders: new Map(),
    tenantLimits: new Map(Object.entries(site.tenants).map(([tenant, instances]) => [tenant, { instances }])),
    fairShares: site.shares === undefined ? undefined : fairShares(site.shares),
    drivers: new Map(),
    loadedDrivers: drivers,
  };
}

function readyOf({ spare = {} }: Site, label: string): ReadySettings | undefined {
  const { [label]: nodes } = spare;
  if (nodes === undefined) return undefined;
  return { min: 0, max: MAX_READY, spare: { nodes }, schedule: [], forecast: undefined };
}

function fairShares(shares: Readonly<Record<string, number>>): FairShares {
  const tenants = Object.entries(shares).map(([tenant, share]) => [tenant, { share, projects: new Map() }] as const);
  return { halfLifeMs: HALF_LIFE_MS, defaultShare: 1, tenants: new Map(tenants) };
}

function section(
  { name, driver = 'example', pools, maxConcurrency }: SiteProvider,
  diskImage: { readonly name: string } | undefined,
): JsonObject {
  const image: JsonObject = diskImage === undefined ? { 'cloud-image': 'debian' } : { diskimage: diskImage.name };
  return {
    name,
    driver,
    ...PROVIDER_OPTIONS,
    ...(maxConcurrency === undefined ? {} : { 'max-concurrency': maxConcurrency }),
    'cloud-images': [{ name: 'debian', username: 'root' }],
    ...(diskImage === undefined ? {} : { diskimages: [diskImage] }),
    pools: pools.map((pool) => ({
      name: pool.name,
      'max-servers': pool.maxServers,
      'host-key-checking': true,
      ...(pool.priority === undefined ? {} : { priority: pool.priority }),
      labels: pool.labels.map((label) => ({ name: label, ...image, size: 'small' })),
    })),
  };
}

function metaSection({ name, pools }: SiteProvider): JsonObject {
  const settings = { 'backing-label': BACKING_LABEL, 'max-parallel-jobs': SLOTS, 'grace-time': GRACE_S };
  return {
    name,
    driver: 'metastatic',
    ...PROVIDER_OPTIONS,
    pools: pools.map((pool) => ({
      name: pool.name,
      'max-servers': pool.maxServers,
      labels: pool.labels.map((label) => ({ name: label, ...settings })),
    })),
  };
}

function rackSection({ name, pools }: SiteProvider): JsonObject {
  return {
    name,
    driver: 'static',
    pools: pools.map((pool) => ({
      name: pool.name,
      'max-servers': pool.maxServers,
      nodes: (pool.machines ?? []).map(({ name: host, labels, slots, username = DEFAULT_USER }) => ({
        name: host,
        labels,
        username,
        'max-parallel-jobs': slots,
        'host-key': HOST_KEY,
      })),
    })),
  };
}
