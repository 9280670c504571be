/**
 * Tests the order of service of random requests over pools that share limits, as `docs/limits-and-waiting.md` specifies
 * it. The model below uses only limits and the records in ZooKeeper, not the launcher's code.
 */

import { expect, it } from '@jest/globals';
import { QuotaInformation, type JsonObject } from '@nodepool/core';
import { sleep } from '@nodepool/zookeeper';
import fc from 'fast-check';
import { BACKFILL_WINDOW_MS } from '../src/context.js';
import { faultyDriver } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider } from './support/world.js';

const LABELS = ['small', 'large', 'other'] as const;
const TENANTS = ['red', 'blue', 'green'] as const;

/** A site and the requests that are submitted to it. */
interface Scenario {
  readonly pools: readonly {
    readonly provider: 'one' | 'two';
    readonly labels: readonly string[];
    readonly maxServers: number;
  }[];
  readonly quota: number;
  readonly redLimit: number;
  readonly requests: readonly RequestPlan[];
}

interface RequestPlan {
  readonly labels: readonly string[];
  readonly priority: number;
  readonly relativePriority: number;
  readonly tenant: (typeof TENANTS)[number];
  /** Seconds from the start until the request is submitted, and from its fulfilment until its nodes are returned. */
  readonly at: number;
  readonly hold: number;
}

/** A limit on the number of nodes for which `holds` returns true. */
interface Limit {
  readonly name: string;
  readonly maximum: number;
  readonly holds: (node: Pick<NodeUse, 'provider' | 'pool' | 'tenant'>) => boolean;
}

interface NodeUse {
  readonly provider: unknown;
  readonly pool: unknown;
  readonly tenant: unknown;
  readonly request: unknown;
}

const asked: fc.Arbitrary<RequestPlan> = fc.record({
  labels: fc.array(fc.constantFrom(...LABELS), { minLength: 1, maxLength: 4 }),
  priority: fc.constantFrom(100, 200, 300),
  relativePriority: fc.nat(2),
  tenant: fc.constantFrom(...TENANTS),
  at: fc.oneof(fc.constant(0), fc.nat(100)),
  hold: fc.integer({ min: 1, max: 40 }),
});

const scenario: fc.Arbitrary<Scenario> = fc.record({
  pools: fc.tuple(
    ...(['one', 'one', 'two'] as const).map((its) =>
      fc.record({
        provider: fc.constant(its),
        labels: fc.uniqueArray(fc.constantFrom(...LABELS), { minLength: 1 }),
        maxServers: fc.integer({ min: 2, max: 6 }),
      }),
    ),
  ),
  quota: fc.integer({ min: 4, max: 8 }),
  redLimit: fc.integer({ min: 3, max: 6 }),
  requests: fc.array(asked, { minLength: 4, maxLength: 12 }),
});

/** Runs the scenario. Returns violations of the order, and the times at which requests were accepted, by index. */
async function run({ pools, quota, redLimit, requests }: Scenario): Promise<{
  readonly flaws: readonly string[];
  readonly acceptedAt: readonly (number | undefined)[];
}> {
  const world = new World();
  world.cloud.configure({
    bootTimeMs: [1000, 1000],
    deleteTimeMs: [500, 500],
    apiLatencyMs: [1, 1],
    listLagMs: [0, 0],
  });
  const sections = (['one', 'two'] as const).map((name) => {
    const own = pools.flatMap((each, index) => (each.provider === name ? [{ ...each, name: `pool-${index}` }] : []));
    return provider(
      name,
      own.map((each) => pool(each.name, each.labels, { 'max-servers': each.maxServers })),
    );
  });
  const limited = faultyDriver(world.cloud, (target) => ({
    getQuotaLimits: () => Promise.resolve(QuotaInformation.limit({ instances: quota })),
    // Each provider has a cloud project of its own.
    listNodes: async (call) =>
      (await target.listNodes(call)).filter(({ tags }) => tags.nodepool_provider_name === target.config.name),
  }));
  const tenantLimits = new Map([['red', { instances: redLimit }]]);
  await world.launcher(sections, 'launcher1', { ...limited, tenantLimits });

  const start = world.clock.monotonic();
  const ids: (string | undefined)[] = requests.map(() => undefined);
  const flaws: string[] = [];
  const accepted = new Map<string, number>();
  const limitsOf = (request: JsonObject, id: string, name: string): readonly Limit[] => [
    {
      name: 'tenant',
      maximum: request.tenant_name === 'red' ? redLimit : Infinity,
      holds: ({ tenant }) => tenant === 'red',
    },
    { name: `provider ${id}`, maximum: quota, holds: (node) => node.provider === id },
    {
      name: `pool ${name}`,
      maximum: pools[Number(name.slice('pool-'.length))]?.maxServers ?? 0,
      holds: (node) => node.pool === name,
    },
  ];
  world.server.onCommit((changes) => {
    if (!changes.some(({ path }) => path.startsWith(`${REQUESTS}/`))) return;
    const all = world.records(REQUESTS);
    for (const [id, request] of all) {
      const place = accepted.has(id) ? undefined : places().find((each) => each.request === id);
      if (place === undefined) continue;
      accepted.set(id, world.clock.monotonic() - start);
      flaws.push(...overtakenBy(place, id, request, all));
    }
  });

  function places(): NodeUse[] {
    return [...world.nodes().values()].map((node) => ({
      provider: node.provider,
      pool: node.pool,
      tenant: node.tenant_name,
      request: node.allocated_to,
    }));
  }

  /**
   * Returns violations of the order: earlier requests that waited for a limit in which this request got a place,
   * although they must not be passed any more.
   */
  function overtakenBy(
    place: NodeUse,
    id: string,
    request: JsonObject,
    all: ReadonlyMap<string, JsonObject>,
  ): string[] {
    const now = world.clock.now();
    return [...all].flatMap(([other, waiting]) => {
      const age = now - Number(waiting.created_time) * 1000;
      if (waiting.state !== 'requested' || age === 0 || !comesBefore(other, waiting, id, request)) return [];
      const isProtected = other.slice(0, 3) < id.slice(0, 3) || age >= BACKFILL_WINDOW_MS;
      const limit = isProtected ? limitWaitedFor(waiting, place) : undefined;
      return limit === undefined ? [] : [`${id} was served before ${other}, which waited for the ${limit}`];
    });
  }

  function limitWaitedFor(waiting: JsonObject, place: NodeUse): string | undefined {
    const labels = waiting.node_types as readonly string[];
    const others = places().filter(({ request }) => request !== place.request);
    const isTooFull = ({ maximum, holds }: Limit): boolean => others.filter(holds).length + labels.length > maximum;
    const able = pools.flatMap((each, index) => {
      const limits = limitsOf(waiting, each.provider, `pool-${index}`);
      const has = labels.every((label) => each.labels.includes(label));
      return has && limits.every(({ maximum }) => labels.length <= maximum) ? [limits] : [];
    });
    for (const limits of able) {
      const [tenant] = limits;
      // A request that waits for its tenant limit does not reserve capacity in the other limits.
      const waitsFor = tenant !== undefined && isTooFull(tenant) ? [tenant] : limits.filter(isTooFull);
      const shared = waitsFor.find(({ holds }) => holds(place));
      if (shared !== undefined) return shared.name;
    }
    return undefined;
  }

  async function live(index: number, { labels, at, hold, ...options }: RequestPlan): Promise<void> {
    await sleep(world.clock, at * 1000);
    const id = await world.requestor.submit(labels, options);
    ids[index] = id;
    if (!(await answered(id))) return;
    const taken = await world.requestor.take(id);
    await sleep(world.clock, hold * 1000);
    await world.requestor.giveBack(taken);
  }

  /** Resolves with true once the request is fulfilled, or with false once it has failed. */
  function answered(id: string): Promise<boolean> {
    return new Promise((resolve) => {
      const path = `${REQUESTS}/${id}`;
      const unsubscribe = world.server.onCommit((changes) => {
        const state = changes.some((change) => change.path === path)
          ? world.records(REQUESTS).get(id)?.state
          : undefined;
        if (state !== 'fulfilled' && state !== 'failed') return;
        unsubscribe();
        resolve(state === 'fulfilled');
      });
    });
  }

  await world.during(Promise.all(requests.map((each, index) => live(index, each))));
  expect(await world.end()).toEqual([]);
  return { flaws, acceptedAt: ids.map((id) => accepted.get(id ?? '')) };
}

function comesBefore(a: string, first: JsonObject, b: string, second: JsonObject): boolean {
  const key = (id: string, request: JsonObject): string =>
    `${id.slice(0, 3)} ${Number(request.relative_priority)} ${id.slice(4)}`;
  return key(a, first) < key(b, second);
}

it('no request is served before an earlier one that waits for a limit of both', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (each) => {
      expect((await run(each)).flaws).toEqual([]);
    }),
    { seed: 1, numRuns: 25, endOnFailure: true },
  );
});

it('requests that share no limit are served independently', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, fc.array(asked, { minLength: 1, maxLength: 8 }), async (each, more) => {
      const apart = [
        { provider: 'one' as const, labels: ['small', 'large'], maxServers: 4 },
        { provider: 'two' as const, labels: ['other'], maxServers: 4 },
      ];
      const inOne = each.requests.map((request, index) => ({
        ...request,
        labels: request.labels.map((label) => (label === 'other' ? 'large' : label)),
        tenant: (['red', 'blue'] as const)[index % 2] ?? 'red',
      }));
      const inTwo = more.map((request) => ({ ...request, labels: ['other'], tenant: 'green' as const }));
      const alone = await run({ ...each, pools: apart, requests: inOne });
      const together = await run({ ...each, pools: apart, requests: [...inOne, ...inTwo] });
      expect(together.acceptedAt.slice(0, inOne.length)).toEqual(alone.acceptedAt);
    }),
    { seed: 1, numRuns: 8, endOnFailure: true },
  );
});

it('a request that waits for its pool is not overtaken in the limit of its tenant', async () => {
  const one = { priority: 100, relativePriority: 0, at: 0, hold: 30 };
  const { flaws } = await run({
    pools: [
      { provider: 'one', labels: ['large'], maxServers: 2 },
      { provider: 'two', labels: ['other'], maxServers: 6 },
    ],
    quota: 8,
    redLimit: 3,
    requests: [
      { ...one, labels: ['large', 'large'], tenant: 'blue' },
      { ...one, labels: ['large', 'large'], tenant: 'red', at: 1 },
      ...[2, 3, 4, 5].map((at) => ({ ...one, labels: ['other'], priority: 300, tenant: 'red' as const, at, hold: 60 })),
    ],
  });
  expect(flaws).toEqual([]);
});
