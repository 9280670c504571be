/** Mutations that violate each rule of the checker, to prove that the checker can fail. */

import {
  externalIdKey,
  INTERRUPTED_LAUNCH,
  InstanceFailedError,
  isJsonObject,
  parseBackingData,
  printBackingData,
  type Instance,
  type JsonValue,
} from '@nodepool/core';
import type { ExampleCloud } from '@nodepool/driver-example';
import type { TransactionOp } from '@nodepool/zookeeper';
import type { Mutation } from './mutation.js';
import {
  changingBackingNodes,
  changingMachines,
  changingProviders,
  declining,
  deletingAtFirstSight,
  fulfils,
  hesitating,
  ignoringStages,
  misreading,
  reallocating,
  registeringOnce,
  REQUEST,
  restarting,
  rewriting,
  withoutLaunchTests,
} from './mutators.js';
import { overlay } from '@nodepool/simulated-process';
import { HOST_KEY, RACK, SLOTS, TENANTS } from './site.js';

const NODE = /^\/nodepool\/nodes\/[^/]+$/;

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'allocates the nodes of a request to the next one too',
    rule: 'S1',
    firstSeed: 5,
    writes: reallocating(),
  },
  {
    name: 'ignores the shares of tenants',
    rule: 'F1',
    firstSeed: 5,
    fault: 'shares',
    config: ({ shares: _, ...site }) => site,
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
    name: 'hands out nodes whose instances are lost',
    rule: 'S2',
    shows: 'its instance',
    fault: 'losses',
    driver: changingProviders((provider) => {
      const known = new Map<string, Instance>();
      return overlay(provider, {
        listNodes: async (call) => {
          const listed = await provider.listNodes(call);
          for (const each of listed) if (each.ready) known.set(externalIdKey(each.externalId), each);
          return [...known.values()];
        },
      });
    }),
  },
  {
    name: 'does not replace nodes whose instances are lost',
    rule: 'L2',
    fault: 'losses',
    driver: changingProviders((provider) => overlay(provider, { listNodes: () => new Promise(() => undefined) })),
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
    name: 'identifies instances by their id alone',
    rule: 'S5',
    fault: 'ids',
    cloud: claimingUniqueIds,
  },
  {
    name: 'takes the instance that has the id of its own one',
    rule: 'S13',
    fault: 'ids',
    cloud: claimingUniqueIds,
  },
  {
    name: 'deletes instances that seem leaked in one list',
    rule: 'S5',
    fault: 'all',
    firstSeed: 5,
    ...deletingAtFirstSight(),
  },
  {
    name: 'deletes resources without a record although deletions are suspended',
    rule: 'S14',
    fault: 'all',
    firstSeed: 18,
    ...deletingAtFirstSight('suspended'),
  },
  {
    name: 'does not search for the instance of an interrupted launch',
    rule: 'S3',
    fault: 'all',
    firstSeed: 51,
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
    name: 'keeps more nodes ready than spare',
    rule: 'L5',
    fault: 'losses',
    config: (site) => ({ ...site, spare: { other: 4 } }),
  },
  {
    name: 'ignores spare',
    rule: 'L5',
    fault: 'losses',
    config: (site) => ({ ...site, spare: {} }),
  },
  {
    name: 'registers machines without checking the registrations of other launchers',
    rule: 'M1',
    // The reads take time, in which other launchers plan the same registrations.
    client: (zooKeeper) =>
      overlay(zooKeeper, {
        transaction: async (ops, options) => {
          const supply = ops.find(({ type, path }) => type === 'set' && path.startsWith('/nodepool/supply/'));
          if (supply === undefined) return zooKeeper.transaction(ops, options);
          for (let read = 0; read < 300; read += 1) await zooKeeper.get(supply.path);
          const unchecked = ops.map((op) =>
            op === supply && op.type === 'set' ? { type: op.type, path: op.path, data: op.data } : op,
          );
          return zooKeeper.transaction(unchecked, options);
        },
      }),
  },
  {
    name: 'accepts requests again and again without serving them',
    rule: 'W1',
    client: hesitating,
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
  {
    name: 'assigns slots without a look at those in use',
    rule: 'B1',
    fault: 'slots',
    driver: changingBackingNodes((backing) =>
      overlay(backing, {
        held: () =>
          backing
            .held()
            .map((each) => ({ ...each, node: { ...each.node, user_data: withoutUses(each.node.user_data) } })),
        users: () => backing.users().map((each) => ({ ...each, driver_data: null })),
      }),
    ),
  },
  {
    name: 'releases backing nodes with nodes',
    rule: 'B2',
    fault: 'slots',
    driver: changingBackingNodes((backing) =>
      overlay(backing, {
        update: async (node, data, call) => {
          const isWritten = await backing.update(node, data, call);
          const present = backing.held().find((each) => each.node.id === node.node.id);
          if (isWritten && present !== undefined) await backing.release(present, call);
          return isWritten;
        },
      }),
    ),
  },
  {
    name: 'does not use the fullest backing node',
    rule: 'B3',
    fault: 'slots',
    driver: changingBackingNodes((backing) =>
      overlay(backing, {
        // It seems to have no free slot.
        held: () => {
          const held = backing.held();
          const uses = held.map(({ node }) => parseBackingData(node.user_data)?.used.size ?? 0);
          const fullest = uses.indexOf(Math.max(...uses.filter((count) => count < SLOTS)));
          return held.map((each, index) => {
            const data = withSlots(each.node.user_data, uses[index] ?? 0);
            return index === fullest && uses[index] !== 0 ? { ...each, node: { ...each.node, user_data: data } } : each;
          });
        },
        update: (node, data, call) => backing.update(node, withSlots(data, SLOTS), call),
      }),
    ),
  },
  {
    name: 'never releases a backing node',
    rule: 'B4',
    fault: 'slots',
    driver: changingBackingNodes((backing) => overlay(backing, { release: () => Promise.resolve(false) })),
  },
  {
    name: 'promotes images without a launch test',
    rule: 'I1',
    fault: 'images',
    config: (site) => ({ ...site, imageTests: {} }),
  },
  {
    name: 'hands out nodes of every image',
    rule: 'I1',
    shows: 'which has passed no launch test',
    fault: 'images',
    store: ignoringStages,
  },
  {
    name: 'launches from rejected images',
    rule: 'I2',
    fault: 'images',
    store: ignoringStages,
  },
  {
    name: 'keeps the newest images, whatever their stages are',
    rule: 'I3',
    fault: 'images',
    builderStore: (store) => misreading(store, () => null),
  },
  {
    name: 'deletes the previous image',
    rule: 'I4',
    fault: 'images',
    builderStore: (store) =>
      misreading(store, ({ review }, uploads) => {
        const newest = Math.max(...uploads.map((each) => each.review?.promoted ?? 0));
        return review?.stage === 'promoted' && review.promoted !== newest ? { ...review, stage: 'uploaded' } : review;
      }),
  },
  {
    name: 'tests no image',
    rule: 'I5',
    fault: 'images',
    store: withoutLaunchTests,
  },
];

/** Returns the data of a backing node as if it had no nodes. */
function withoutUses(data: JsonValue): JsonValue {
  const known = parseBackingData(data);
  return known === undefined ? data : printBackingData({ ...known, used: new Map() });
}

/** Returns the data of a backing node with another number of slots. */
function withSlots(data: JsonValue, slots: number): JsonValue {
  const known = parseBackingData(data);
  return known === undefined ? data : printBackingData({ ...known, slots });
}

/** Returns a cloud that claims to use no id again, so that the driver does not compare tags. */
function claimingUniqueIds(cloud: ExampleCloud): ExampleCloud {
  return overlay(cloud, { describe: async () => ({ ...(await cloud.describe()), reusesIds: false }) });
}

/** Tags of an instance whose node never existed. */
const FOREIGN_TAGS = {
  nodepool_node_id: '9999999999',
  nodepool_provider_name: 'alpha',
  nodepool_pool_name: 'main',
  nodepool_launch_attempt: 'f'.repeat(32),
};
