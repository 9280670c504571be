/** Building blocks of the mutations: each changes records, drivers, clients or stores in one way. */

import {
  isJsonObject,
  type BackingNodes,
  type ImageUpload,
  type JsonObject,
  type Provider,
  type Resource,
  type SuppliedMachine,
} from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import { never } from './cloud-view.js';
import type { Mutation } from './mutation.js';
import { overlay } from '@nodepool/simulated-process';
import { LAUNCH_TEST } from './rules/images.js';
import { nodesOf } from './rules/values.js';

/** Paths of request records. */
export const REQUEST = /^\/nodepool\/requests\/[^/]+$/;
export const NODE = /^\/nodepool\/nodes\/[^/]+$/;

/** Changes the records at matching paths, however they are written. */
export function rewriting(path: RegExp, change: (record: JsonObject) => JsonObject): NonNullable<Mutation['writes']> {
  return (ops) =>
    ops.map((op) => {
      if ((op.type !== 'set' && op.type !== 'create') || !path.test(op.path) || op.data === undefined) return op;
      const record: unknown = JSON.parse(new TextDecoder().decode(op.data));
      return isJsonObject(record) ? { ...op, data: new TextEncoder().encode(JSON.stringify(change(record))) } : op;
    });
}

/** Adds the node of the previous request to every fulfilled request. */
export function reallocating(): NonNullable<Mutation['writes']> {
  let last: readonly string[] = [];
  return rewriting(REQUEST, (request) => {
    const nodes = nodesOf(request);
    if (request['state'] !== 'fulfilled' || nodes.length === 0) return request;
    const shared = last;
    last = nodes;
    return shared.length === 0 ? request : { ...request, nodes: [...shared.slice(0, 1), ...nodes.slice(1)] };
  });
}

export function fulfils(op: TransactionOp): boolean {
  return op.type === 'set' && REQUEST.test(op.path) && new TextDecoder().decode(op.data).includes('"fulfilled"');
}

/** Makes every configuration differ from the previous one. */
export function restarting(): NonNullable<Mutation['config']> {
  let changes = 0;
  return (site) => {
    changes += 1;
    return { ...site, providers: site.providers.map((each) => ({ ...each, maxConcurrency: 100 + changes })) };
  };
}

/** Returns a client that registers components only in its first session. */
export function registeringOnce(zooKeeper: ZooKeeper): ZooKeeper {
  let first: bigint | undefined;
  return overlay(zooKeeper, {
    create: (path, data, options) => {
      if (!path.startsWith('/nodepool/components/')) return zooKeeper.create(path, data, options);
      first ??= zooKeeper.session?.id;
      return zooKeeper.session?.id === first ? zooKeeper.create(path, data, options) : never();
    },
  });
}

/** Returns a client that accepts and returns every request many times when it returns it. */
export function hesitating(zooKeeper: ZooKeeper): ZooKeeper {
  return overlay(zooKeeper, {
    transaction: async (ops, options) => {
      const results = await zooKeeper.transaction(ops, options);
      for (const op of ops) {
        if (op.type !== 'set' || !REQUEST.test(op.path)) continue;
        const request = new TextDecoder().decode(op.data);
        if (!request.includes('"requested"')) continue;
        for (let count = 0; count < 40; count += 1) {
          await zooKeeper.set(op.path, new TextEncoder().encode(request.replace('"requested"', '"pending"')));
          await zooKeeper.set(op.path, op.data);
        }
      }
      return results;
    },
  });
}

/** Applies a defect to every provider of a driver. */
export function changingProviders(spoil: (provider: Provider) => Provider): NonNullable<Mutation['driver']> {
  return (driver) => overlay(driver, { getProvider: (config) => spoil(driver.getProvider(config)) });
}

/** Changes the machines that a driver declares. */
export function changingMachines(
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

/** Changes the backing nodes that a driver gets. */
export function changingBackingNodes(spoil: (backing: BackingNodes) => BackingNodes): NonNullable<Mutation['driver']> {
  return changingProviders((provider) =>
    overlay(provider, {
      start: (context) => {
        const { backingNodes } = context;
        if (backingNodes === undefined) return provider.start(context);
        return provider.start({ ...context, backingNodes: (owner) => spoil(backingNodes(owner)) });
      },
    }),
  );
}

/** Treats every instance without a record as leaked immediately, always or only while deletions are suspended. */
export function deletingAtFirstSight(when: 'always' | 'suspended' = 'always'): Pick<Mutation, 'client' | 'driver'> {
  let zooKeeper: ZooKeeper | undefined;
  const leaked = async (found: readonly Resource[], provider: string): Promise<readonly Resource[]> => {
    const { children = [] } = (await zooKeeper?.children('/nodepool/nodes')) ?? {};
    return found.filter(
      ({ tags }) => tags.nodepool_provider_name === provider && !children.includes(tags.nodepool_node_id ?? ''),
    );
  };
  const isSuspended = async (): Promise<boolean> =>
    (await zooKeeper?.exists('/nodepool/suspensions/installation')) !== undefined;
  return {
    client: (client) => (zooKeeper = client),
    driver: changingProviders((provider) =>
      overlay(provider, {
        cleanupLeakedResources: (round, call) =>
          provider.cleanupLeakedResources(
            {
              leaked: async (found) => {
                const proper = await round.leaked(found);
                const isActive = when === 'always' || (await isSuspended());
                return isActive ? leaked(found, provider.config.name) : proper;
              },
            },
            call,
          ),
      }),
    ),
  };
}

/** Returns a store that falsely declines some requests. */
export function declining(
  store: Store,
  ignored: (request: { readonly id: string; readonly state: string; readonly tenant: string | null }) => boolean,
): Store {
  const requests = overlay(store.requests, {
    accept: (entry, nodes, options) =>
      ignored({ id: entry.id, state: entry.request.state, tenant: entry.request.tenant_name })
        ? Promise.reject(new Error('this launcher is spoilt'))
        : store.requests.accept(entry, nodes, options),
  });
  return withParts(store, { requests });
}

/** Returns a store in which some parts are replaced. */
function withParts(store: Store, parts: Partial<Pick<Store, 'requests' | 'images'>>): Store {
  return new Proxy(store, {
    get: (target, name): unknown => {
      if (Object.hasOwn(parts, name)) return Reflect.get(parts, name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (...args: unknown[]): unknown => Reflect.apply(value, target, args) : value;
    },
  });
}

/** Returns a store that launches from the newest upload, whatever its stage is. */
export function ignoringStages(store: Store): Store {
  const choose: Store['images']['choose'] = (image, provider) => {
    const upload = [...store.images.uploads({ image, provider })].findLast(({ state }) => state === 'ready');
    return upload === undefined ? undefined : { upload, trial: undefined };
  };
  const images = overlay(store.images, { choose, isBarred: () => false, servesRequests: () => true });
  return withParts(store, { images });
}

/** Returns a store in which the reviews of uploads are different. The records themselves do not change. */
export function misreading(
  store: Store,
  change: (upload: ImageUpload, uploads: readonly ImageUpload[]) => ImageUpload['review'],
): Store {
  const uploads: Store['images']['uploads'] = (query) => {
    const found = [...store.images.uploads(query)];
    return found.map((upload) => ({ ...upload, review: change(upload, found) ?? null }));
  };
  return withParts(store, { images: overlay(store.images, { uploads }) });
}

/** Returns a store whose requests for launch tests are never submitted. */
export function withoutLaunchTests(store: Store): Store {
  const submit: Store['requests']['submit'] = (request, options) =>
    request.requestor === LAUNCH_TEST ? never() : store.requests.submit(request, options);
  return withParts(store, { requests: overlay(store.requests, { submit }) });
}
