/** Rules about instances in the cloud: safety 3, 4, 5 and 9. */

import type { InstanceTags } from '@nodepool/core';
import type { CloudInstance } from '@nodepool/driver-example';
import type { Seen } from '../observed.js';
import { OwnerlessInstances } from './ownerless.js';
import type { Rule, CheckerView } from './rule.js';
import { holdExpired, textOf } from './values.js';

type Tag = keyof InstanceTags;
const TAGS: readonly Tag[] = [
  'nodepool_node_id',
  'nodepool_provider_name',
  'nodepool_pool_name',
  'nodepool_installation',
  'nodepool_launch_attempt',
];
/**
 * Node states whose instance is always in use, and states whose instance is in use while the requestor holds the lock.
 */
const LIVE_STATES: ReadonlySet<unknown> = new Set(['building', 'testing', 'ready']);
const LIVE_IF_LOCKED: ReadonlySet<unknown> = new Set(['in-use', 'used', 'hold']);
/** Time after which every listing contains a new instance (ms). */
const VISIBLE_AFTER_MS = 60_000;

/** Safety 3: an attempt is recorded before the cloud is called, and creates at most one instance. */
export function oneInstancePerAttempt({ observed, cloud }: CheckerView): Rule {
  const recorded = new Set<string>();
  const note = (): void => {
    for (const { id, data } of observed.nodes.values()) {
      const attempt = attemptOf(data['progress']);
      if (attempt !== undefined) recorded.add(`${id} ${attempt}`);
    }
  };
  return {
    number: 'S3',
    committed({ nodes }) {
      for (const { id, after } of nodes) {
        const attempt = attemptOf(after?.data['progress']);
        if (attempt !== undefined) recorded.add(`${id} ${attempt}`);
      }
      return undefined;
    },
    creating({ tags }) {
      const { nodepool_node_id: node = '', nodepool_launch_attempt: attempt = '' } = tags;
      if (recorded.has(`${node} ${attempt}`)) return undefined;
      return `attempt ${attempt} of node ${node} requested an instance without a record of the attempt`;
    },
    created({ tags }) {
      const attempt = tags['nodepool_launch_attempt'];
      const duplicates = cloud.existingInstances().filter((each) => each.tags['nodepool_launch_attempt'] === attempt);
      if (attempt === undefined || duplicates.length <= 1) return undefined;
      return `attempt ${attempt} has the instances ${duplicates.map(({ id }) => id).join(' and ')}`;
    },
    forget: note,
  };
}

/** Safety 4: every resource in the cloud has identifying tags from its creation. */
export function instancesSayWhatTheyAre({ observed }: CheckerView): Rule {
  return {
    number: 'S4',
    creating({ name, tags }) {
      for (const tag of TAGS)
        if ((tags[tag] ?? '') === '') return `an instance ${name} was asked for without the tag ${tag}`;
      const node = observed.nodes.get(tags['nodepool_node_id'] ?? '');
      if (node === undefined) return undefined;
      const { provider, pool } = node.data;
      if (tags['nodepool_provider_name'] === provider && tags['nodepool_pool_name'] === pool) return undefined;
      return `the tags of instance ${name} do not name the provider and pool of its node`;
    },
  };
}

/** Time between the two sightings that make an instance leaked (ms). */
const SETTLE_MS = 60_000;

/**
 * Safety 5: only our own resources that no record needs are deleted. An instance without a record is leaked only if it
 * was seen twice without an owner, one minute apart.
 */
export function onlyGarbageIsDeleted(view: CheckerView): Rule {
  const { observed } = view;
  const ownerless = new OwnerlessInstances(view);
  const look = (): undefined => {
    ownerless.look();
    return undefined;
  };
  return {
    number: 'S5',
    committed: look,
    created: look,
    forget: look,
    deleting(instance) {
      const { id, tags } = instance;
      const nodeId = tags['nodepool_node_id'];
      if (nodeId === undefined || isForeign(tags)) return `instance ${id}, which is not ours, was deleted`;
      // A failed attempt moves its instance to a separate record shortly before it clears its own.
      for (const record of observed.nodes.values()) {
        if (record.data['state'] === 'deleting' && isRecordOf(record, instance)) return undefined;
      }
      const node = observed.nodes.get(nodeId);
      const age = ownerless.ageOf(instance);
      if (node === undefined && age < SETTLE_MS)
        return `instance ${id} was deleted as leaked, and has had no owner for ${age} ms only`;
      if (node === undefined || !isRecordOf(node, instance) || !isLive(node, view.wallClock())) return undefined;
      return `instance ${id} was deleted while its node ${nodeId} is ${textOf(node.data['state'])}`;
    },
  };
}

/** Returns true if the record has the instance, and not a former instance with its id. */
function isRecordOf({ id, data }: Pick<Seen, 'id' | 'data'>, instance: Pick<CloudInstance, 'id' | 'tags'>): boolean {
  if (data['external_id'] !== instance.id) return false;
  const attempt = attemptOf(data['progress']) ?? '';
  if (attempt !== '') return attempt === instance.tags['nodepool_launch_attempt'];
  return instance.tags['nodepool_node_id'] === id;
}

/** Safety 13: the instance that a ready node records was created for it. */
export function nodesHaveTheirInstance({ cloud }: CheckerView): Rule {
  return {
    number: 'S13',
    committed({ nodes }) {
      for (const { id, before, after } of nodes) {
        if (after?.data['state'] !== 'ready' || before?.data['state'] === 'ready') continue;
        const { external_id: externalId } = after.data;
        const instance = cloud.existingInstances().find((each) => each.id === externalId);
        const owner = instance?.tags['nodepool_node_id'];
        if (instance !== undefined && owner !== id)
          return `node ${id} became ready with ${instance.id}, the instance of node ${owner ?? 'of another owner'}`;
      }
      return undefined;
    },
  };
}

/**
 * Returns true if the node must not be deleted. A held node needs no lock for that; the lock holder of an expired one
 * may delete it.
 */
function isLive({ data, holder }: Seen, nowMs: number): boolean {
  const { state } = data;
  if (LIVE_STATES.has(state)) return true;
  if (state === 'hold' && holder === undefined) return !holdExpired(data, nowMs);
  return LIVE_IF_LOCKED.has(state) && holder === 'requestor';
}

/** Safety 9: a record is deleted only after its instance. */
export function recordsOutliveInstances(view: CheckerView): Rule {
  const { cloud } = view;
  /** By launch attempt. */
  const bornAt = new Map<string, number>();
  return {
    number: 'S9',
    created({ tags }) {
      const attempt = tags['nodepool_launch_attempt'] ?? '';
      if (!bornAt.has(attempt)) bornAt.set(attempt, view.now());
      return undefined;
    },
    committed({ nodes }) {
      for (const { id, before, after } of nodes) {
        if (before === undefined || after !== undefined) continue;
        for (const instance of cloud.existingInstances()) {
          if (isRecordOf({ id, data: before.data }, instance))
            return `node ${id} was removed before its instance ${instance.id}`;
          const age = view.now() - (bornAt.get(instance.tags['nodepool_launch_attempt'] ?? '') ?? view.now());
          const its = instance.tags['nodepool_node_id'] === id;
          const recorded = attemptOf(before.data['progress']) === instance.tags['nodepool_launch_attempt'];
          if (its && recorded && age > VISIBLE_AFTER_MS)
            return `node ${id} was removed, and ${instance.id} left behind`;
        }
      }
      return undefined;
    },
  };
}

/** Returns true if a resource belongs to another owner. */
export function isForeign(tags: Readonly<Record<string, string>>): boolean {
  return tags['theirs'] !== undefined;
}

function attemptOf(progress: unknown): string | undefined {
  if (typeof progress !== 'object' || progress === null || !('attempt' in progress)) return undefined;
  return typeof progress.attempt === 'string' ? progress.attempt : undefined;
}
