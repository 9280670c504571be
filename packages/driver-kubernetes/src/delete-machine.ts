/**
 * State machine that deletes the namespace, project or pod of a node; the cluster deletes its content.
 *
 *     start ──> finding ──> deleting ──> leaving ──> confirming ──> gone
 *                              ^                         │
 *                              └── not being deleted ────┤
 *                                           leaving <────┘ still there
 *
 * The deletion names the uid of the object that was found, so that it never affects a later object of the same name.
 * Its proof is the cluster's answer to a query for the object.
 */

import type { Advance, ExternalId, JsonValue, MachineCall, StateMachine } from '@nodepool/core';
import { ConfigurationError, isDriverError, logCloudDeletion, PendingCall } from '@nodepool/core';
import type { Collection, KubernetesObject } from './client/objects.js';
import type { Cluster } from './cluster.js';
import { describeTermination } from './termination.js';

/** Interval between two looks at the copy of the object (ms). A look makes no call. */
const CHECK_INTERVAL_MS = 500;
/** Time between two queries if the copy does not help (ms); doubled each time. */
const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 30_000;

interface Target {
  readonly collection: Collection;
  readonly object: KubernetesObject;
}

export class DeleteMachine implements StateMachine {
  state: 'start' | 'finding' | 'deleting' | 'leaving' | 'confirming' | 'gone' = 'start';
  private readonly search = new PendingCall<Target | undefined>();
  private readonly deletion = new PendingCall<void>();
  private target: Target | undefined;
  waitsFor: string | undefined;
  private waitMs = FIRST_WAIT_MS;
  private deletionAcceptedAt = 0;

  constructor(
    private readonly cluster: Cluster,
    readonly externalId: ExternalId,
  ) {}

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'finding';
        return this.search.start(this.find(call));
      case 'finding':
      case 'confirming':
        return this.search.underway ?? this.afterSearch(call);
      case 'deleting':
        return this.deletion.underway ?? this.afterDeletion();
      case 'leaving':
        return this.watch(call);
      case 'gone':
        return { next: 'complete' };
    }
  }

  /** Returns an empty state, because a deletion can safely start over. */
  save(): JsonValue {
    return null;
  }

  /** Resolves with the object of the external id; undefined if there is none. */
  private async find(call: MachineCall): Promise<Target | undefined> {
    for (const { collection, name } of this.places()) {
      try {
        const object = await this.cluster.getInstance(collection, name, call);
        return { collection, object: this.checked(object) };
      } catch (error) {
        if (!isDriverError(error) || error.code !== 'not-found') throw error;
      }
    }
    return undefined;
  }

  /**
   * Returns the places that an external id can mean. The id of a pod is `<pool>-<pod>`, and both names can contain
   * dashes; the names of pods are unique.
   */
  private places(): readonly { readonly collection: Collection; readonly name: string }[] {
    const id = typeof this.externalId === 'string' ? this.externalId : JSON.stringify(this.externalId);
    const { config } = this.cluster;
    if (config.flavour !== 'openshiftpods') return [{ collection: this.cluster.instances(), name: id }];
    const pools = [...config.pools.keys()].filter((pool) => id.startsWith(`${pool}-`));
    if (pools.length === 0) {
      throw new ConfigurationError(`pod ${id} cannot be deleted: provider ${config.name} no longer has its pool`);
    }
    return pools.map((pool) => ({ collection: this.cluster.instances(pool), name: id.slice(pool.length + 1) }));
  }

  /** Returns the object unless another provider owns it. An object without tags belongs to the node that names it. */
  private checked(object: KubernetesObject): KubernetesObject {
    const owner = this.cluster.tagsOf(object)['nodepool_provider_name'];
    if (owner === undefined || owner === this.cluster.config.name) return object;
    throw new ConfigurationError(`${object.name} belongs to provider ${owner} and is not deleted`);
  }

  private afterSearch(call: MachineCall): Advance {
    const found = this.search.take();
    // Another uid is another object, which was created after the deletion.
    if (found === undefined || (this.target !== undefined && found.object.uid !== this.target.object.uid)) {
      this.state = 'gone';
      return { next: 'complete' };
    }
    this.target = found;
    if (!found.object.isBeingDeleted) return this.delete(found, call);
    this.waitsFor = describeTermination(found.collection.kind, found.object);
    return this.leave();
  }

  private delete({ collection, object }: Target, call: MachineCall): Advance {
    const { kind } = collection;
    logCloudDeletion(call.log, { kind: kind.name, externalId: object.name, name: object.name }, 'its node is deleted');
    this.state = 'deleting';
    return this.deletion.start(this.cluster.client.delete(collection, object.name, object.uid, call));
  }

  private afterDeletion(): Advance {
    try {
      this.deletion.take();
    } catch (error) {
      // The object no longer exists, or has another uid; a query decides.
      if (!isDriverError(error) || (error.code !== 'not-found' && error.code !== 'conflict')) throw error;
      return this.leave();
    }
    return this.leave();
  }

  private leave(): Advance {
    this.state = 'leaving';
    this.deletionAcceptedAt = this.cluster.clock.monotonic();
    this.waitMs = Math.min(2 * this.waitMs, MAX_WAIT_MS);
    return { next: 'delay', ms: CHECK_INTERVAL_MS };
  }

  /**
   * Waits until the copy lacks the object, and then asks the cluster. It also asks after a while if the copy is not
   * current, or still has the object.
   */
  private watch(call: MachineCall): Advance {
    const { target, cluster } = this;
    const namespace = target?.collection.namespace;
    const cache = namespace === undefined ? cluster.namespaces : cluster.podsIn(namespace, {});
    const copy = target === undefined ? undefined : cache?.get(target.object.name, target.object.namespace);
    const isCurrent = cache?.isCurrent === true;
    const isLeaving = copy?.isBeingDeleted === true && isCurrent;
    const elapsed = cluster.clock.monotonic() - this.deletionAcceptedAt;
    const isAbsent = copy === undefined && isCurrent;
    if (!isAbsent && elapsed < (isLeaving ? MAX_WAIT_MS : this.waitMs)) return { next: 'delay', ms: CHECK_INTERVAL_MS };
    this.state = 'confirming';
    return this.search.start(this.find(call));
  }
}
