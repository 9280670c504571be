/** Mutations that violate each rule of the checker, to prove that the checker can fail. */

import {
  INTERRUPTED_LAUNCH,
  InstanceFailedError,
  isJsonObject,
  type JsonObject,
  type Provider,
  type Resource,
  type SuppliedMachine,
} from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { ExampleCloud } from '@nodepool/driver-example';
import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import { never } from './cloud-view.js';
import type { Mutation } from './mutation.js';
import { overlay } from '@nodepool/simulated-process';
import { nodesOf } from './rules/values.js';
import { HOST_KEY, RACK, TENANTS } from './site.js';

const NODE = /^\/nodepool\/nodes\/[^/]+$/;
const REQUEST = /^\/nodepool\/requests\/[^/]+$/;

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'allocates the nodes of a request to the next one too',
    rule: 'S1',
    firstSeed: 5,
    writes: reallocating(),
  },
  {
    name: 'reorders the nodes of a request',
    rule: 'S2',
    writes: rewriting(REQUEST, (request) => {
      const { nodes } = request;
      return request['state'] === 'fulfilled' && Array.isArray(nodes)
        ? { ...request, nodes: nodes.toReversed() }
        : request;
    }),
  },
  {
    name: 'fulfils a request and keeps the locks of its nodes',
    rule: 'S2',
    writes: (ops) =>
      ops.some((op) => fulfils(op)) ? ops.filter((op) => op.type !== 'delete' || !op.path.includes('/nodes/')) : ops,
  },
  {
    name: 'repeats a creation whose answer is late',
    rule: 'S3',
    cloud: (cloud) =>
      overlay(cloud, {
        createInstance: async (spec) => {
          await cloud.createInstance(spec);
          return cloud.createInstance(spec);
        },
      }),
  },
  {
    name: 'calls the cloud before the attempt is recorded',
    rule: 'S3',
    writes: rewriting(NODE, (node) =>
      isJsonObject(node['progress']) ? { ...node, progress: { ...node['progress'], attempt: 'none' } } : node,
    ),
  },
  {
    name: 'does not tag instances with their owner',
    rule: 'S4',
    cloud: (cloud) =>
      overlay(cloud, {
        createInstance: (spec) => cloud.createInstance({ ...spec, tags: { ...spec.tags, nodepool_pool_name: '' } }),
      }),
  },
  {
    name: 'deletes instances of live nodes',
    rule: 'S5',
    cloud: (cloud) =>
      overlay(cloud, {
        deleteInstance: (id) => {
          const other = cloud.existingInstances().find((instance) => instance.id !== id);
          return cloud.deleteInstance(other?.id ?? id);
        },
      }),
  },
  {
    name: 'treats instances of other owners as its own',
    rule: 'S5',
    firstSeed: 2,
    cloud: (cloud: ExampleCloud): ExampleCloud => {
      let ours = {};
      return overlay(cloud, {
        listInstances: async (marker, limit) => {
          const page = await cloud.listInstances(marker, limit);
          for (const { tags } of page.items) {
            const { nodepool_installation: installation } = tags;
            if (installation !== undefined) ours = { nodepool_installation: installation };
          }
          const items = page.items.map((each) => ({ ...each, tags: { ...FOREIGN_TAGS, ...ours, ...each.tags } }));
          return { ...page, items };
        },
      });
    },
  },
  {
    name: 'deletes instances that seem leaked in one list',
    rule: 'S5',
    fault: 'all',
    ...deletingAtFirstSight(),
  },
  {
    name: 'does not search for the instance of an interrupted launch',
    rule: 'S3',
    fault: 'all',
    driver: changingProviders((provider) =>
      overlay(provider, {
        getRequestHandler: (pool, request) => {
          const handler = provider.getRequestHandler(pool, request);
          return overlay(handler, {
            launch: (launch) =>
              handler.launch(launch.saved === INTERRUPTED_LAUNCH ? overlay(launch, { saved: null }) : launch),
          });
        },
      }),
    ),
  },
  {
    name: 'writes without versions and without the lock’s fence',
    rule: 'S6',
    writes: (ops) =>
      ops.flatMap((op): TransactionOp[] => {
        if (op.type === 'check') return [];
        return op.type === 'set' ? [{ type: 'set', path: op.path, data: op.data }] : [op];
      }),
  },
  {
    name: 'sets used nodes to ready',
    rule: 'S7',
    writes: rewriting(NODE, (node) =>
      node['state'] === 'deleting' ? { ...node, state: 'ready', allocated_to: null } : node,
    ),
  },
  {
    name: 'allows pools more than their limits',
    rule: 'S8',
    launchers: 1,
    config: (site) => ({
      ...site,
      providers: site.providers.map((provider) => ({
        ...provider,
        pools: provider.pools.map((pool) => ({ ...pool, maxServers: pool.maxServers + 3 })),
      })),
    }),
  },
  {
    name: 'ignores the limits of tenants',
    rule: 'S8',
    config: (site) => ({ ...site, tenants: {} }),
  },
  {
    name: 'regards a deletion as finished once it was requested',
    rule: 'S9',
    cloud: (cloud) =>
      overlay(cloud, {
        deleteInstance: (id) => {
          const instance = cloud.existingInstances().find((each) => each.id === id);
          return instance === undefined ? cloud.deleteInstance(id) : { ...instance, state: 'deleted' as const };
        },
      }),
  },
  {
    name: 'deletes unknown fields of records',
    rule: 'S11',
    writes: rewriting(REQUEST, ({ span_info: _lost, ...known }) => known),
  },
  {
    name: 'stops all work for every change of its configuration',
    rule: 'S12',
    fault: 'all',
    config: restarting(),
  },
  {
    name: 'uses the faulty driver for every provider',
    rule: 'S12',
    fault: 'driver',
    config: (site) => ({ ...site, providers: site.providers.map((each) => ({ ...each, driver: 'faulty' })) }),
  },
  {
    name: 'forgets every third request',
    rule: 'L1',
    store: (store) => declining(store, ({ id, state }) => state === 'requested' && id.endsWith('3')),
  },
  {
    name: 'never accepts an orphaned request',
    rule: 'L3',
    fault: 'all',
    store: (store) => declining(store, ({ state }) => state === 'pending'),
  },
  {
    name: 'abandons deletions',
    rule: 'L2',
    cloud: (cloud) => overlay(cloud, { deleteInstance: () => new Promise(() => undefined) }),
  },
  {
    name: 'does not register again with a new session',
    rule: 'L4',
    fault: 'all',
    client: registeringOnce,
  },
  {
    name: 'keeps more nodes ready than min-ready',
    rule: 'L5',
    config: (site) => ({ ...site, minReady: { small: 5 } }),
  },
  {
    name: 'leaks the locks of withdrawn requests',
    rule: 'L6',
    client: (zooKeeper) =>
      overlay(zooKeeper, {
        delete: (path, options) =>
          path.startsWith('/nodepool/requests-lock/') ? Promise.resolve() : zooKeeper.delete(path, options),
      }),
  },
  {
    name: 'ignores min-ready',
    rule: 'L5',
    config: (site) => ({ ...site, minReady: {} }),
  },
  {
    name: 'registers machines without checking the registrations of other launchers',
    rule: 'M1',
    firstSeed: 3,
    // More launchers make it likelier that two of them register at the same time.
    launchers: 8,
    writes: (ops) =>
      ops.map((op) => {
        if (op.type !== 'set' || !op.path.startsWith('/nodepool/supply/')) return op;
        return { type: 'set', path: op.path, data: op.data };
      }),
  },
  {
    name: 'does not register a machine',
    rule: 'M2',
    driver: changingMachines((machines) => machines.slice(1)),
  },
  {
    name: 'changes machines that are allocated to a request',
    rule: 'M3',
    writes: rewriting(NODE, (node) =>
      node['provider'] === RACK && typeof node['allocated_to'] === 'string' ? { ...node, username: 'other' } : node,
    ),
  },
  {
    name: 'treats every machine as usable',
    rule: 'M4',
    fault: 'all',
    firstSeed: 5,
    driver: changingMachines((machines) =>
      machines.map((machine) => ({ ...machine, check: () => Promise.resolve({ hostKeys: [HOST_KEY] }) })),
    ),
  },
  {
    name: 'treats a cloud without capacity as faulty nodes',
    rule: 'C1',
    fault: 'refusals',
    driver: changingProviders((provider) =>
      overlay(provider, {
        getRequestHandler: (pool, request) => {
          const handler = provider.getRequestHandler(pool, request);
          return overlay(handler, {
            launch: (launch) =>
              handler.launch(launch).catch((error: unknown) => {
                throw new InstanceFailedError(String(error));
              }),
          });
        },
      }),
    ),
  },
  {
    name: 'does not use the provider with capacity',
    rule: 'C2',
    fault: 'refusals',
    firstSeed: 3,
    config: (site) => ({
      ...site,
      providers: site.providers.map((provider) => ({
        ...provider,
        pools: provider.pools.map((pool) => (pool.priority === undefined ? pool : { ...pool, labels: ['other'] })),
      })),
    }),
  },
  {
    name: 'serves every other request before those of the highest priority',
    rule: 'O1',
    shows: 'waits for the pool',
    store: (store) => declining(store, ({ id }) => id.startsWith('100-')),
  },
  {
    name: 'serves every other request before those of the highest priority, at the quota of the provider',
    rule: 'O1',
    shows: 'waits for the provider',
    fault: 'quota',
    store: (store) => declining(store, ({ id }) => id.startsWith('100-')),
  },
  {
    name: 'serves every other request of a tenant before those of the highest priority',
    rule: 'O1',
    shows: 'waits for the tenant',
    launchers: 1,
    firstSeed: 4,
    store: (store) => declining(store, ({ id, tenant }) => id.startsWith('100-') && tenant === TENANTS[1]),
  },
];

/** Tags of an instance whose node never existed. */
const FOREIGN_TAGS = { nodepool_node_id: '9999999999', nodepool_provider_name: 'alpha', nodepool_pool_name: 'main' };

/** Changes the records at matching paths, however they are written. */
function rewriting(path: RegExp, change: (record: JsonObject) => JsonObject): NonNullable<Mutation['writes']> {
  return (ops) =>
    ops.map((op) => {
      if ((op.type !== 'set' && op.type !== 'create') || !path.test(op.path) || op.data === undefined) return op;
      const record: unknown = JSON.parse(new TextDecoder().decode(op.data));
      return isJsonObject(record) ? { ...op, data: new TextEncoder().encode(JSON.stringify(change(record))) } : op;
    });
}

/** Adds the node of the previous request to every fulfilled request. */
function reallocating(): NonNullable<Mutation['writes']> {
  let last: readonly string[] = [];
  return rewriting(REQUEST, (request) => {
    const nodes = nodesOf(request);
    if (request['state'] !== 'fulfilled' || nodes.length === 0) return request;
    const shared = last;
    last = nodes;
    return shared.length === 0 ? request : { ...request, nodes: [...shared.slice(0, 1), ...nodes.slice(1)] };
  });
}

function fulfils(op: TransactionOp): boolean {
  return op.type === 'set' && REQUEST.test(op.path) && new TextDecoder().decode(op.data).includes('"fulfilled"');
}

/** Makes every configuration differ from the previous one. */
function restarting(): NonNullable<Mutation['config']> {
  let changes = 0;
  return (site) => {
    changes += 1;
    return { ...site, providers: site.providers.map((each) => ({ ...each, maxConcurrency: 100 + changes })) };
  };
}

/** Returns a client that registers components only in its first session. */
function registeringOnce(zooKeeper: ZooKeeper): ZooKeeper {
  let first: bigint | undefined;
  return overlay(zooKeeper, {
    create: (path, data, options) => {
      if (!path.startsWith('/nodepool/components/')) return zooKeeper.create(path, data, options);
      first ??= zooKeeper.session?.id;
      return zooKeeper.session?.id === first ? zooKeeper.create(path, data, options) : never();
    },
  });
}

/** Applies a defect to every provider of a driver. */
function changingProviders(spoil: (provider: Provider) => Provider): NonNullable<Mutation['driver']> {
  return (driver) => overlay(driver, { getProvider: (config) => spoil(driver.getProvider(config)) });
}

/** Changes the machines that a driver declares. */
function changingMachines(
  spoil: (machines: readonly SuppliedMachine[]) => readonly SuppliedMachine[],
): NonNullable<Mutation['driver']> {
  return changingProviders((provider) =>
    overlay(provider, {
      start: (context) => {
        const { nodeSupply } = context;
        if (nodeSupply === undefined) return provider.start(context);
        return provider.start({ ...context, nodeSupply: { apply: (machines) => nodeSupply.apply(spoil(machines)) } });
      },
    }),
  );
}

/** Treats every instance without a record as leaked immediately. */
function deletingAtFirstSight(): Pick<Mutation, 'client' | 'driver'> {
  let zooKeeper: ZooKeeper | undefined;
  const leaked = async (found: readonly Resource[], provider: string): Promise<readonly Resource[]> => {
    const { children = [] } = (await zooKeeper?.children('/nodepool/nodes')) ?? {};
    return found.filter(
      ({ tags }) => tags.nodepool_provider_name === provider && !children.includes(tags.nodepool_node_id ?? ''),
    );
  };
  return {
    client: (client) => (zooKeeper = client),
    driver: changingProviders((provider) =>
      overlay(provider, {
        cleanupLeakedResources: (_round, call) =>
          provider.cleanupLeakedResources({ leaked: (found) => leaked(found, provider.config.name) }, call),
      }),
    ),
  };
}

/** Returns a store that falsely declines some requests. */
function declining(
  store: Store,
  ignored: (request: { readonly id: string; readonly state: string; readonly tenant: string | null }) => boolean,
): Store {
  const requests = overlay(store.requests, {
    accept: (entry, nodes, options) =>
      ignored({ id: entry.id, state: entry.request.state, tenant: entry.request.tenant_name })
        ? Promise.reject(new Error('this launcher is spoilt'))
        : store.requests.accept(entry, nodes, options),
  });
  return new Proxy(store, {
    get: (target, name): unknown => {
      if (name === 'requests') return requests;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (...args: unknown[]): unknown => Reflect.apply(value, target, args) : value;
    },
  });
}
