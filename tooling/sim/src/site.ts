/** The site that is simulated: providers, pools and labels, and how a launcher's configuration is made of them. */

import type { JsonObject, NodepoolConfig } from '@nodepool/core';
import { exampleDriver, type ExampleCloud } from '@nodepool/driver-example';

export interface SitePool {
  readonly name: string;
  readonly labels: readonly string[];
  readonly maxServers: number;
  readonly priority?: number;
}

export interface SiteProvider {
  readonly name: string;
  readonly pools: readonly SitePool[];
  readonly maxConcurrency?: number;
}

/** What one launcher is configured with. */
export type SiteConfig = readonly SiteProvider[];

export const LABELS = ['small', 'large', 'other'] as const;

/** Three pools of two providers, overlapping in their labels. */
export const WHOLE_SITE: SiteConfig = [
  {
    name: 'alpha',
    pools: [
      { name: 'main', labels: ['small', 'large'], maxServers: 8 },
      { name: 'spare', labels: ['small'], maxServers: 3, priority: 200 },
    ],
  },
  { name: 'beta', pools: [{ name: 'main', labels: ['small', 'large', 'other'], maxServers: 6 }], maxConcurrency: 5 },
];

/** Retries are few and times short, so that a run sees their ends. */
const PROVIDER_OPTIONS = { 'launch-retries': 2, 'launch-timeout': 300, 'boot-timeout': 60 } as const;

/** What the program would make of the file of such a site. Throws when the site is wrong. */
export function nodepoolConfig(site: SiteConfig, cloud: ExampleCloud): NodepoolConfig {
  const driver = exampleDriver({ cloud });
  const problems: string[] = [];
  const context = {
    diskImages: new Map(),
    labels: new Set<string>(LABELS),
    problem: (path: readonly (string | number)[], { expected }: { readonly expected: string }) => {
      problems.push(`${path.join('.')}: ${expected}`);
    },
  };
  const configs = site.map((provider) => driver.getProviderConfig(section(provider), context));
  if (problems.length > 0) throw new Error(`the simulated site is wrong: ${problems.join('; ')}`);
  return {
    webapp: { port: 0, listenAddress: '127.0.0.1' },
    elementsDir: undefined,
    imagesDir: undefined,
    buildLogDir: '',
    buildLogRetention: 7,
    zookeeper: { servers: [], chroot: '', tls: undefined, sessionTimeoutMs: 10_000 },
    labels: new Map(LABELS.map((name) => [name, { name, minReady: 0, maxReadyAgeMs: Infinity }])),
    maxHoldAgeMs: Infinity,
    diskImages: new Map(),
    providers: new Map(configs.map((config) => [config.name, config])),
    brokenProviders: new Map(),
    tenantLimits: new Map(),
    drivers: new Map(),
    loadedDrivers: new Map([['example', driver]]),
  };
}

function section({ name, pools, maxConcurrency }: SiteProvider): JsonObject {
  return {
    name,
    driver: 'example',
    ...PROVIDER_OPTIONS,
    ...(maxConcurrency === undefined ? {} : { 'max-concurrency': maxConcurrency }),
    'cloud-images': [{ name: 'debian', username: 'root' }],
    pools: pools.map((pool) => ({
      name: pool.name,
      'max-servers': pool.maxServers,
      'host-key-checking': true,
      ...(pool.priority === undefined ? {} : { priority: pool.priority }),
      labels: pool.labels.map((label) => ({ name: label, 'cloud-image': 'debian', size: 'small' })),
    })),
  };
}
