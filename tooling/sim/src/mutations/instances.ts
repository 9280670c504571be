/** Mutations that mistreat instances of the cloud. */

import { externalIdKey, INTERRUPTED_LAUNCH, InstanceFailedError, isJsonObject, type Instance } from '@nodepool/core';
import type { ExampleCloud } from '@nodepool/driver-example';
import type { Mutation } from '../mutation.js';
import { NODE, changingProviders, deletingAtFirstSight, rewriting } from '../mutators.js';
import { overlay } from '@nodepool/simulated-process';

export const INSTANCES_MUTATIONS: readonly Mutation[] = [
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
    firstSeed: 13,
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
    firstSeed: 6,
    ...deletingAtFirstSight(),
  },
  {
    name: 'deletes resources without a record although deletions are suspended',
    rule: 'S14',
    fault: 'all',
    firstSeed: 41,
    ...deletingAtFirstSight('suspended'),
  },
  {
    name: 'does not search for the instance of an interrupted launch',
    rule: 'S3',
    fault: 'all',
    firstSeed: 68,
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
    name: 'abandons deletions',
    rule: 'L2',
    cloud: (cloud) => overlay(cloud, { deleteInstance: () => new Promise(() => undefined) }),
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
];

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
