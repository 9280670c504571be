/** Objects that all launches and deletions of a provider share: the client, and copies of the cluster's objects. */

import { NotFoundError, type Call, type Clock, type JsonObject, type Logger, type RandomSource } from '@nodepool/core';
import { USER } from './bodies.js';
import type { Client } from './client/client.js';
import type { ClusterAccess } from './client/kubeconfig.js';
import { ObjectCache, type ObjectCacheOptions } from './client/object-cache.js';
import { NAMESPACES, PODS, PROJECTS, type Collection, type KubernetesObject } from './client/objects.js';
import type { KubernetesProvider } from './config.js';
import { ForbiddenError } from './errors.js';
import { isCopy, tagsInDescription, tagsInLabels, type Tags } from './identity.js';

const DESCRIPTION = 'openshift.io/description';

export interface ClusterOptions {
  readonly config: KubernetesProvider;
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

export class Cluster {
  readonly config: KubernetesProvider;
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** The namespaces or projects of nodes; undefined for pods in existing projects. */
  readonly namespaces: ObjectCache | undefined;
  /** Caches of pods by namespace; the key `''` holds for all namespaces. */
  private readonly pods = new Map<string, ObjectCache>();
  /** Caches of single launches, which `stop` ends as well. */
  private readonly launching = new Set<ObjectCache>();

  constructor(private readonly options: ClusterOptions) {
    this.config = options.config;
    this.client = options.client;
    this.clock = options.clock;
    this.random = options.random;
    const { flavour, name, pools } = this.config;
    const selection = { labelSelector: `nodepool_provider_name=${name}` };
    if (flavour === 'kubernetes') {
      this.namespaces = this.cache({ kind: NAMESPACES }, { selection });
      this.pods.set('', this.cache({ kind: PODS }, { selection }));
    } else if (flavour === 'openshift') {
      // Projects have no labels of their creator, and their watches ignore the version.
      this.namespaces = this.cache({ kind: PROJECTS }, { canResume: false });
    } else {
      // All pods of the project count against its quota.
      for (const pool of pools.keys()) this.pods.set(pool, this.cache({ kind: PODS, namespace: pool }));
    }
  }

  get access(): ClusterAccess {
    return this.client.access;
  }

  /** Collection of the objects that are the instances; `namespace` is that of a pod. */
  instances(namespace?: string): Collection {
    const { flavour } = this.config;
    if (flavour === 'openshiftpods') return { kind: PODS, namespace };
    return { kind: flavour === 'openshift' ? PROJECTS : NAMESPACES };
  }

  /**
   * Resolves with an object of `instances`. Rejects with `NotFoundError` if it does not exist. An account of OpenShift
   * has rights only in its projects, so a project that it no longer sees and that the authorizer refuses is deleted.
   */
  async getInstance(collection: Collection, name: string, call: Call): Promise<KubernetesObject> {
    try {
      return await this.client.get(collection, name, call);
    } catch (error) {
      if (collection.kind !== PROJECTS || !(error instanceof ForbiddenError)) throw error;
      const { items } = await this.client.list(collection, {}, call);
      if (items.some((project) => project.name === name)) throw error;
      throw new NotFoundError(`the account has no project ${name}`, { cause: error });
    }
  }

  /** Resolves when all copies are read. Rejects with the first failure. */
  async start(call: Call): Promise<void> {
    await Promise.all(this.caches().map((cache) => cache.start(call)));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.caches(), ...this.launching].map((cache) => cache.stop()));
    await this.client.close();
  }

  /** Returns the shared copy of the pods of a namespace; undefined if it has no pods with these tags. */
  podsIn(namespace: string, tags: Tags): ObjectCache | undefined {
    const ofProvider = tags['nodepool_provider_name'] === this.config.name ? this.pods.get('') : undefined;
    return ofProvider ?? this.pods.get(namespace);
  }

  /** Watches a single pod, until the cache is passed to `release`. */
  watchPod(name: string, namespace: string): ObjectCache {
    const selection = { fieldSelector: `metadata.name=${name}` };
    const cache = this.cache({ kind: PODS, namespace }, { selection, withoutList: true });
    this.launching.add(cache);
    cache.startSoon();
    return cache;
  }

  async release(cache: ObjectCache): Promise<void> {
    await cache.stop();
    this.launching.delete(cache);
  }

  /** Resolves with all pods in the copies, of all pools if there is one per pool. */
  async currentPods(call: Call): Promise<readonly KubernetesObject[]> {
    return (await Promise.all([...this.pods.values()].map((cache) => cache.current(call)))).flat();
  }

  /** Returns the tags of an instance; none of a copy. */
  tagsOf({ name, labels, annotations }: Pick<KubernetesObject, 'name' | 'labels' | 'annotations'>): Tags {
    const inLabels = tagsInLabels(labels);
    const described = this.config.flavour === 'openshift' && Object.keys(inLabels).length === 0;
    const tags = described ? tagsInDescription(annotations[DESCRIPTION] ?? '') : inLabels;
    return isCopy(tags, name) ? {} : tags;
  }

  /** Returns the dictionary from which Zuul creates its kubeconfig, without the certificate of the authority. */
  connection(namespace: string, token: string): JsonObject {
    const { server, insecure } = this.access;
    return { namespace, host: server, skiptls: insecure, token, user: USER };
  }

  private caches(): ObjectCache[] {
    return [...(this.namespaces === undefined ? [] : [this.namespaces]), ...this.pods.values()];
  }

  private cache(
    collection: Collection,
    more: Pick<ObjectCacheOptions, 'selection' | 'canResume' | 'withoutList'> = {},
  ): ObjectCache {
    const { client, clock, random, log } = this.options;
    return new ObjectCache({ client, collection, clock, random, log, ...more });
  }
}
