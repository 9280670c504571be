/** The number of jobs that GitHub may assign: what pools, and the limits of pools, providers and tenants leave. */

import { describe, expect, it } from '@jest/globals';
import type { Resources } from '@nodepool/core';
import type { PoolComponentData } from '@nodepool/store';
import { freeCapacity, type CapacityFacts, type Consumer, type LauncherFree } from '../src/capacity/capacity.js';
import { freeIn } from '../src/capacity/capacity-source.js';

const POOL: PoolComponentData = {
  kind: 'pool',
  state: 'running',
  ...{ hostname: 'h', version: '', model_api: 0, id: 'i', name: 'main' },
  ...{ provider_name: 'cloud', supported_labels: ['debian', 'big'], priority: 100, paused: false },
};
const NEEDS = { debian: { instances: 1, cores: 2, ram: 4096 }, big: { instances: 1, cores: 8, ram: 16_384 } };
const DEBIAN: Consumer = { label: 'debian', tenant: undefined };

/** Returns what a launcher tells of the pool `main` of the provider `cloud`. */
function told(
  pool: Resources,
  provider: Resources = {},
  tenants: Readonly<Record<string, Resources>> = {},
  ignoresProviderQuota = false,
): LauncherFree {
  return {
    pools: [{ provider: 'cloud', pool: 'main', ignoresProviderQuota, free: pool, needs: NEEDS }],
    providers: new Map([['cloud', provider]]),
    tenants: new Map(Object.entries(tenants)),
  };
}

function capacity(launchers: readonly LauncherFree[], more: Partial<CapacityFacts> = {}, consumer = DEBIAN) {
  return freeCapacity(consumer, { pools: [POOL], launchers, ready: 0, consumers: [consumer], ...more });
}

describe('limits', () => {
  it.each([
    ['instances of the pool', told({ instances: 3 }), 3, 'limit of instances'],
    ['cores of the pool', told({ instances: 9, cores: 7 }), 3, 'limit of cores'],
    ['memory of the provider', told({ instances: 9 }, { ram: 8192 }), 2, 'limit of ram'],
    ['no limit', told({}), 100_000, 'no limit'],
    ['nothing left', told({ instances: 0 }, { ram: 8192 }), 0, 'limit of instances'],
    ['a provider that the pool ignores', told({ cores: 9 }, { ram: 0 }, {}, true), 4, 'limit of cores'],
  ])('%s', (_what, launcher, nodes, reason) => {
    expect(capacity([launcher]).nodes).toBe(nodes);
    expect(capacity([launcher]).reason).toContain(reason);
  });

  it('of a tenant count for its scale sets only', () => {
    const launcher = told({ instances: 9 }, {}, { red: { cores: 5 } });
    const red = { ...DEBIAN, tenant: 'red' };
    expect(capacity([launcher], {}, red)).toEqual({
      nodes: 2,
      reason: 'tenant red has room for 2 nodes (limit of cores)',
    });
    expect(capacity([launcher], {}, { ...DEBIAN, tenant: 'blue' }).nodes).toBe(9);
    // Ready nodes count for the tenant, too, once it gets them.
    expect(capacity([launcher], { ready: 5 }, red).nodes).toBe(2);
  });

  it('are those of the launcher that leaves least, and a pool of two launchers counts once', () => {
    expect(capacity([told({ instances: 5 }), told({ instances: 3 })], { pools: [POOL, POOL] }).nodes).toBe(3);
  });

  it('of a provider hold over its pools', () => {
    const pools = [POOL, { ...POOL, name: 'other' }];
    const [main] = told({ instances: 4 }).pools;
    if (main === undefined) throw new Error('there is no pool');
    const providers = new Map([['cloud', { instances: 6 }]]);
    const launcher = { pools: [main, { ...main, pool: 'other' }], providers, tenants: new Map<string, Resources>() };
    expect(capacity([launcher], { pools }).nodes).toBe(6);
  });
});

describe('pools', () => {
  it.each([
    ['paused', { paused: true }],
    ['closed for the label', { paused_labels: ['debian'] }],
    ['stopped', { state: 'stopped' }],
    ['in trouble', { trouble: { state: 'unreachable', reason: 'no route', since: 0 } }],
    ['without the image', { unready_labels: { debian: 'the image is missing' } }],
  ] as const)('%s: only ready nodes count', (_what, change) => {
    expect(capacity([told({ instances: 5 })], { pools: [{ ...POOL, ...change }], ready: 1 }).nodes).toBe(1);
  });

  it('whose launcher tells nothing count one node, and no pool counts none', () => {
    expect(capacity([]).nodes).toBe(1);
    expect(capacity([], { pools: [] })).toEqual({ nodes: 0, reason: 'no launcher offers the label debian' });
  });
});

describe('scale sets', () => {
  it('that share a limit divide it without loss', () => {
    const consumers = [DEBIAN, { ...DEBIAN }, { ...DEBIAN }];
    const shares = consumers.map((each) => capacity([told({ instances: 8 })], { consumers }, each).nodes);
    expect(shares).toEqual([3, 3, 2]);
  });

  it('of different labels share the provider, and those of another provider do not', () => {
    const big = { label: 'big', tenant: undefined };
    const elsewhere = { label: 'fedora', tenant: undefined };
    const pools = [POOL, { ...POOL, provider_name: 'other', supported_labels: ['fedora'] }];
    const facts = { pools, consumers: [DEBIAN, big, elsewhere] };
    expect(capacity([told({}, { cores: 16 })], facts).nodes).toBe(4);
    expect(capacity([told({}, { cores: 16 })], facts, big).nodes).toBe(1);
  });

  it('of one tenant share its limit', () => {
    const red = { ...DEBIAN, tenant: 'red' };
    const other = { label: 'fedora', tenant: 'red' };
    const launcher = told({}, {}, { red: { instances: 5 } });
    expect(capacity([launcher], { consumers: [red, other] }, red).nodes).toBe(3);
  });

  it('share ready nodes of their label', () => {
    const consumers = [DEBIAN, { ...DEBIAN }];
    const facts = { ready: 3, consumers };
    expect(consumers.map((each) => capacity([told({ instances: 0 })], facts, each).nodes)).toEqual([2, 1]);
  });
});

it('the document of a launcher is read without trust', () => {
  const pool = { provider: 'cloud', pool: 'main', free: { cores: 4, ram: 'much' }, needs: { debian: { cores: 2 } } };
  const document = { pools: [pool, { provider: 1 }], providers: [{ provider: 'cloud', free: {} }], tenants: 7 };
  expect(freeIn(document)).toEqual({
    pools: [{ ...pool, ignoresProviderQuota: false, free: { cores: 4 } }],
    providers: new Map([['cloud', {}]]),
    tenants: new Map(),
  });
  expect(freeIn('<html>')).toEqual({ pools: [], providers: new Map(), tenants: new Map() });
});
