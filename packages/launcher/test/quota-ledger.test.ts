/**
 * Tests the ledger's guarantee for random interleavings: confirmed nodes never exceed a limit, and some request always
 * makes progress. The tests simulate launchers, each with a store of its own, so that each can be delayed at any step.
 */

import { describe, expect, it } from '@jest/globals';
import { QuotaInformation, type RandomSource } from '@nodepool/core';
import { openStore, type Store } from '@nodepool/store';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { plannedNode } from '../src/launch/node-record.js';
import { QuotaLedger, type PoolRef } from '../src/quota/quota-ledger.js';

const REQUESTS = 10;
/** Time limit of a test, in milliseconds of virtual time. */
const WAIT_LIMIT_MS = 600_000;
const SEEDS = Array.from({ length: 30 }, (_, index) => index + 1);
const LIMITS = { 'pool a': 5, 'pool b': 6, provider: 9, 'tenant red': 4 } as const;
const LABEL = {
  name: 'small',
  image: { kind: 'cloud-image', name: 'debian' },
  connection: { type: 'ssh', port: 22, username: null, pythonPath: null, shellType: null },
  hostKeyChecking: false,
  consoleLog: false,
} as const;

const NODE = /^\/nodepool\/nodes\/\d+$/;

interface AttemptCounts {
  confirmed: number;
  refused: number;
}

/** A simulated launcher: a store that receives changes late, and its ledger. */
class LedgerClient {
  readonly ledger: QuotaLedger;

  constructor(
    readonly zk: ZooKeeper,
    readonly store: Store,
  ) {
    this.ledger = new QuotaLedger(store);
    for (const pool of ['a', 'b'] as const) {
      this.ledger.setPoolLimit('demo', pool, QuotaInformation.limit({ instances: LIMITS[`pool ${pool}`] }));
    }
    this.ledger.setProviderLimit('demo', QuotaInformation.limit({ instances: LIMITS.provider }));
    this.ledger.setTenantLimits(new Map([['red', { instances: LIMITS['tenant red'] }]]));
    store.start();
  }

  /** Tries once to confirm nodes for a request, without checking the quota first. */
  async decide(
    request: string,
    place: PoolRef,
    count: number,
    tenant: string,
    pause: () => Promise<void>,
  ): Promise<boolean> {
    const { store, ledger } = this;
    const entry = store.requests.get(request);
    if (entry === undefined) return false;
    const node = plannedNode(
      {
        provider: place.provider,
        pool: poolConfig(place.pool),
        label: LABEL,
        launcher: 'somebody',
        request: { ...entry.request, tenant_name: tenant },
        resources: { instances: 1 },
        upload: undefined,
        az: undefined,
      },
      0,
    );
    const accepted = await store.requests.accept(entry, {
      create: Array.from({ length: count }, () => node),
      reuse: [],
    });
    if (accepted === undefined) return false;
    const last = accepted.created.at(-1)!;
    await store.nodes.known(last);
    const need = QuotaInformation.use({ instances: count });
    if (
      ledger.confirm(place, { ...entry.request, tenant_name: tenant }, last, { need, tenantNeed: need }) !== undefined
    ) {
      await accepted.request.undo(accepted.created.map((id) => ({ id, version: 0 })));
      return false;
    }
    await pause();
    const handles = await store.nodes.tryLockAll(accepted.created.map((id) => ({ id, change: { state: 'building' } })));
    await pause();
    for (const handle of handles!) await handle.remove();
    await accepted.request.release({ state: 'failed' });
    return true;
  }
}

function poolConfig(name: string): Parameters<typeof plannedNode>[0]['pool'] {
  return {
    name,
    priority: 100,
    maxServers: Infinity,
    limits: {},
    nodeAttributes: {},
    availabilityZones: [],
    labels: new Map(),
  };
}

/** Returns the scopes whose confirmed nodes, which may have been launched, exceed the limit. */
function overLimit(server: SimulatedZooKeeperServer): string[] {
  const counts: Record<string, number> = {};
  const add = (scope: string): void => void (counts[scope] = (counts[scope] ?? 0) + 1);
  for (const [path, { data }] of server.dump()) {
    if (!NODE.test(path)) continue;
    const { state, pool, tenant_name: tenant } = JSON.parse(Buffer.from(data).toString()) as Record<string, string>;
    if (state === 'init') continue;
    add(`pool ${pool!}`);
    add('provider');
    add(`tenant ${tenant!}`);
  }
  return Object.entries(LIMITS).flatMap(([scope, limit]) =>
    (counts[scope] ?? 0) > limit ? [`${scope}: ${counts[scope]!} of ${limit}`] : [],
  );
}

async function run(seed: number): Promise<{ over: string[]; attempts: AttemptCounts; left: number }> {
  const random: RandomSource = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random.next() * limit);
  const clock = new VirtualClock();
  const server = new SimulatedZooKeeperServer({ clock, latencyMs: () => below(20) });
  const clients = Array.from({ length: 4 }, (_, index) => {
    const zk = server.connect();
    return new LedgerClient(zk, openStore(zk, { clock, random, identifier: `client ${index}` }));
  });
  const settle = async (condition: () => boolean): Promise<void> => {
    expect(await clock.runUntil(condition, WAIT_LIMIT_MS)).toBe(true);
  };
  await settle(() => clients.every(({ store }) => store.complete));
  const over = new Set<string>();
  server.onCommit((changes) => {
    if (!changes.some(({ path }) => NODE.test(path))) return;
    for (const each of overLimit(server)) over.add(each);
  });
  const attempts: AttemptCounts = { confirmed: 0, refused: 0 };
  const pause = (): Promise<void> => new Promise((resolve) => void clock.schedule(below(100), resolve));
  const one = async (): Promise<void> => {
    const client = clients[below(4)]!;
    const count = 1 + below(4);
    const tenant = random.next() < 0.5 ? 'red' : 'blue';
    const place = { provider: 'demo', pool: random.next() < 0.5 ? 'a' : 'b', ignoreProviderQuota: false };
    const id = await client.store.requests.submit(
      {
        state: 'requested',
        state_time: 0,
        declined_by: [],
        decline_reasons: {},
        node_types: ['small'],
        nodes: [],
        reuse: true,
        requestor: 'test',
        requestor_data: null,
        provider: null,
        relative_priority: 0,
        event_id: null,
        created_time: null,
        tenant_name: tenant,
      },
      { priority: 200 },
    );
    while (!(await client.decide(id, place, count, tenant, pause))) {
      attempts.refused += 1;
      await new Promise<void>((resolve) => void clock.schedule(below(1000), resolve));
    }
    attempts.confirmed += 1;
  };
  let settled = false;
  const work = Promise.all(Array.from({ length: REQUESTS }, () => one())).finally(() => (settled = true));
  work.catch(() => undefined);
  await settle(() => settled);
  await work;
  const left = [...server.dump().keys()].filter((path) => NODE.test(path)).length;
  for (const { store, zk } of clients) {
    store.close();
    let closed = false;
    const closing = zk.close().finally(() => (closed = true));
    await settle(() => closed);
    await closing;
  }
  return { over: [...over], attempts, left };
}

describe('launchers that decide concurrently from their own caches', () => {
  it.each(SEEDS)('never exceed a limit together, and finally serve all requests (seed %i)', async (seed) => {
    const { over, attempts, left } = await run(seed);
    expect(over).toEqual([]);
    expect(attempts.confirmed).toBe(REQUESTS);
    expect(left).toBe(0);
  });

  it('have enough rejected writes in these runs to test that', async () => {
    let refused = 0;
    for (const seed of SEEDS.slice(0, 5)) refused += (await run(seed)).attempts.refused;
    expect(refused).toBeGreaterThan(5);
  });
});
