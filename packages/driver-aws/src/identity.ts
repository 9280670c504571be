/**
 * Tags that identify instances. A call that launches one instance sets the tags of its node. A call that launches
 * several sets the same tags for all: they list the nodes in the order of the launch index that EC2 gives to each
 * instance, so every instance has its identity from its creation.
 */

import type { InstanceTags } from '@nodepool/core';
import type { Host, Instance } from '@aws-sdk/client-ec2';
import { tagsIn } from './client/ec2.js';
import { TAGS_MAX, VALUE_MAX } from './tag-limits.js';

/**
 * Tag with the client token of the launch. A copy of an instance can have its tags, but EC2 shows the token of the call
 * that launched it.
 */
export const LAUNCH_TAG = 'nodepool_launch';
/** Tag of the instances of fleets, which have tokens of EC2; EC2 marks them with a tag that copies cannot have. */
export const FLEET_TAG = 'nodepool_fleet';
const FLEET_ID_TAG = 'aws:ec2:fleet-id';
/** Tag with the time of the call. Volumes that were restored from a backup are younger. */
export const LAUNCHED_AT_TAG = 'nodepool_launched_at';
/** Maximum time from a call to the launch of its instances (ms). */
const LAUNCH_DELAY_MS = 120_000;
/** Tags with the nodes of a shared launch: `nodepool_nodes_0` and so on. */
const NODES_TAG = 'nodepool_nodes_';
/** Maximum number of instances of one call. */
const LAUNCH_MAX = 100;

export type Tags = Readonly<Record<string, string>>;

/** A node that takes part in a launch. */
export interface LaunchedNode {
  readonly hostname: string;
  readonly tags: InstanceTags;
}

/** Tags that the nodes of a launch have in common. */
interface SharedTags {
  readonly own: Tags;
  /** Name of the instances of a launch of several. */
  readonly label: string;
  readonly token: string;
  /** Time of the call (ms since the epoch). */
  readonly now: number;
}

/** Returns the tags of the instances that one call launches. */
export function launchTags(nodes: readonly LaunchedNode[], { own, label, token, now }: SharedTags): Tags {
  const [first] = nodes;
  if (first === undefined) return own;
  const ofLaunch = { [LAUNCH_TAG]: token, [LAUNCHED_AT_TAG]: new Date(now).toISOString() };
  if (nodes.length === 1) return { ...own, ...nodeTags(first), ...ofLaunch };
  const { nodepool_provider_name, nodepool_pool_name, nodepool_installation } = first.tags;
  const lists = Object.fromEntries(packed(nodes).map((list, index) => [`${NODES_TAG}${index}`, list]));
  const common = { nodepool_provider_name, nodepool_pool_name, nodepool_installation };
  return { ...own, Name: label, ...common, ...ofLaunch, ...lists };
}

/** Returns the tags of one node, its name included. */
export function nodeTags({ hostname, tags }: LaunchedNode): Tags {
  return { Name: hostname, ...tags };
}

/** Returns the maximum number of nodes that one call with these tags of the operator can launch. */
export function launchMax(own: Tags): number {
  // Those that the nodes share, and the two of `nodeTags` that a shared launch lacks.
  const others = new Set([...Object.keys(own), 'Name']).size + 7;
  // A tag holds five nodes; see `packed`.
  return Math.max(1, Math.min(LAUNCH_MAX, (TAGS_MAX - others) * 5));
}

/**
 * Returns the tags of an instance: those of its node, if it belongs to one. Returns no tags for a copy of an instance.
 */
export function tagsOf(instance: Instance): Tags {
  const tags = tagsIn(instance.Tags);
  if (isCopy(instance, tags)) return {};
  return ofNodeAt(tags, instance.AmiLaunchIndex ?? 0);
}

/** Returns the client token of the call that allocates the host of a node. The launch on it has another one. */
export function hostTokenOf({
  nodepool_launch_attempt: attempt,
}: Pick<InstanceTags, 'nodepool_launch_attempt'>): string {
  return `${attempt}-host`;
}

/** Returns the tags of a dedicated host; none for a copy. EC2 shows the token of the call that allocated a host. */
export function tagsOfHost({ ClientToken, Tags }: Host): Tags {
  const tags = tagsIn(Tags);
  const nodepool_launch_attempt = tags['nodepool_launch_attempt'];
  if (nodepool_launch_attempt === undefined) return tags;
  return ClientToken === hostTokenOf({ nodepool_launch_attempt }) ? tags : {};
}

/**
 * Returns the tags of one node of a shared launch. Returns other tags unchanged, and those of an instance that
 * `Launches` has tagged afterwards.
 */
function ofNodeAt(tags: Tags, launchIndex: number): Tags {
  if (!isShared(tags)) return tags;
  const others = Object.fromEntries(Object.entries(tags).filter(([name]) => !name.startsWith(NODES_TAG)));
  const [nodeId, attempt] = nodesIn(tags)[launchIndex] ?? [];
  if (nodeId === undefined || attempt === undefined || 'nodepool_launch_attempt' in others) return others;
  return { ...others, nodepool_node_id: nodeId, nodepool_launch_attempt: attempt };
}

/**
 * Returns true if another launch than that in the tags created the instance. AWS does not document the client token of
 * spot instances, so a spot instance with another token is a copy only if it is younger than its launch.
 */
function isCopy({ ClientToken, InstanceLifecycle, LaunchTime }: Instance, tags: Tags): boolean {
  if (tags[FLEET_TAG] !== undefined && tags[FLEET_ID_TAG] === undefined) return true;
  const token = tags[LAUNCH_TAG];
  if (token === undefined || token === ClientToken) return false;
  const launchedAt = Date.parse(tags[LAUNCHED_AT_TAG] ?? '');
  const delayMs = (LaunchTime?.getTime() ?? NaN) - launchedAt;
  return InstanceLifecycle !== 'spot' || !(Math.abs(delayMs) <= LAUNCH_DELAY_MS);
}

/** Returns true if the tags are those of a shared launch, whose resources belong to one of several nodes. */
export function isShared(tags: Tags): boolean {
  return `${NODES_TAG}0` in tags;
}

/**
 * Returns the tags of the nodes of a shared launch. A volume or an interface belongs to one of them; EC2 gives launch
 * indexes to instances only.
 */
export function ownersOf(tags: Tags): { readonly tags: Tags; readonly otherOwners?: readonly Tags[] } {
  const common = Object.fromEntries(Object.entries(tags).filter(([name]) => !name.startsWith(NODES_TAG)));
  const [first, ...otherOwners] = nodesIn(tags).map(([nodeId = '', attempt = '']) => ({
    ...{ ...common, nodepool_node_id: nodeId, nodepool_launch_attempt: attempt },
  }));
  if (first === undefined || 'nodepool_node_id' in tags) return { tags };
  return { tags: first, otherOwners };
}

/** Returns node ids and attempts as few values of tags, each as long as possible. */
function packed(nodes: readonly LaunchedNode[]): readonly string[] {
  const lists: string[] = [];
  for (const { tags } of nodes) {
    const entry = `${tags.nodepool_node_id}:${tags.nodepool_launch_attempt}`;
    const last = lists.at(-1);
    if (last !== undefined && last.length + 1 + entry.length <= VALUE_MAX) lists[lists.length - 1] = `${last} ${entry}`;
    else lists.push(entry);
  }
  return lists;
}

/** Returns node id and attempt by launch index. */
function nodesIn(tags: Tags): readonly (readonly string[])[] {
  const entries: string[] = [];
  for (let index = 0; ; index += 1) {
    const list = tags[`${NODES_TAG}${index}`];
    if (list === undefined) break;
    entries.push(...list.split(' '));
  }
  return entries.map((entry) => entry.split(':'));
}
