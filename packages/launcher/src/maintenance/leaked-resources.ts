/**
 * Decides which of the resources in a cloud's listing are leaked. A resource of this installation and provider is
 * leaked if a fresh read finds neither its node nor its upload, or if another launch attempt of the node created it.
 * Leaked resources are deleted after two sightings at least a minute apart, only if their tags are complete, and only
 * if they are a small share of all resources.
 */

import { externalIdKey, logCloudDeletion, type LeakFilter, type Node, type Resource } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { LEAKED_RESOURCES } from '../diagnostics/metrics/launcher-metrics.js';
import { unknownUploads } from './leaked-uploads.js';

/** Minimum time between the first sighting of a leaked resource and its deletion, in milliseconds. */
const SETTLE_MS = 60_000;
/** Limits of the deletions in one round: a share of the provider's resources, or a number that is always allowed. */
const DELETION_LIMIT = { share: 0.1, always: 3 } as const;

/** A resource that looks leaked, and why. */
interface LeakCandidate {
  readonly resource: Resource;
  readonly because: string;
}

export class LeakedResources implements LeakFilter {
  /** Times at which suspicious resources were first seen, in `Clock.monotonic` milliseconds, by kind and id. */
  private seen: ReadonlyMap<string, number> = new Map();
  /** Keys of the reported resources whose tags are incomplete. */
  private reported: ReadonlySet<string> = new Set();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: string,
    private readonly signal: AbortSignal,
  ) {}

  async leaked(resources: readonly Resource[]): Promise<readonly Resource[]> {
    const { store } = this.context;
    // The sync makes the ZooKeeper server return at least all records that were written before the listing was made.
    await store.zooKeeper.sync('/', { signal: this.signal });
    const installation = await store.installation.read({ signal: this.signal });
    const ours = resources.filter(
      ({ tags }) =>
        tags.nodepool_provider_name === this.provider && (tags.nodepool_installation ?? installation) === installation,
    );
    const due = this.seenBefore(await this.withoutOwner(ours));
    const isIdentified = ({ resource }: LeakCandidate): boolean => hasCompleteIdentity(resource);
    this.report(due.filter((suspicion) => !isIdentified(suspicion)));
    return this.release(due.filter(isIdentified), ours.length);
  }

  /** Returns all due resources, to be deleted, or none if they exceed the limit of one round. */
  private release(due: readonly LeakCandidate[], total: number): readonly Resource[] {
    const allowed = Math.max(DELETION_LIMIT.always, Math.floor(total * DELETION_LIMIT.share));
    const { log, metrics } = this.context;
    const { provider } = this;
    if (due.length <= allowed) {
      for (const { resource, because } of due) {
        metrics.count(LEAKED_RESOURCES, { provider, kind: resource.kind });
        logCloudDeletion(log.with({ provider, tags: resource.tags }), resource, because);
      }
      return due.map(({ resource }) => resource);
    }
    log.error(
      'Too many resources look leaked, so none of them is deleted: make sure that ZooKeeper has not lost its nodes, ' +
        'and that no other installation uses the provider by the same name; then delete them by hand',
      undefined,
      { provider, leaked: due.length, resources: total, allowed, names: due.map(({ resource }) => resource.name) },
    );
    return [];
  }

  /**
   * Reports leaked resources with incomplete tags. Any installation with a provider of this name may own those without
   * an installation, and a person may have created the others.
   */
  private report(due: readonly LeakCandidate[]): void {
    const unreported = due.filter(({ resource }) => !this.reported.has(keyOf(resource)));
    this.reported = new Set(due.map(({ resource }) => keyOf(resource)));
    if (unreported.length === 0) return;
    this.context.log.warn(
      'Resources look leaked and are not deleted, because they lack some of the tags that this version writes: make ' +
        'sure that no other installation uses the provider by the same name; then delete them by hand',
      {
        provider: this.provider,
        names: unreported.map(({ resource }) => resource.name),
        missing: [...new Set(unreported.flatMap(({ resource }) => missingTags(resource)))],
      },
    );
  }

  private seenBefore(suspicious: readonly LeakCandidate[]): LeakCandidate[] {
    const now = this.context.clock.monotonic();
    const seen = new Map<string, number>();
    const due: LeakCandidate[] = [];
    for (const suspicion of suspicious) {
      const key = keyOf(suspicion.resource);
      const first = this.seen.get(key) ?? now;
      seen.set(key, first);
      if (now - first >= SETTLE_MS) due.push(suspicion);
    }
    this.seen = seen;
    return due;
  }

  private async withoutOwner(ours: readonly Resource[]): Promise<readonly LeakCandidate[]> {
    const { store } = this.context;
    const ofNodes = new Map<string, Resource[]>();
    const ofUploads: Resource[] = [];
    for (const resource of ours) {
      const { nodepool_node_id: nodeId, nodepool_upload_id: uploadId } = resource.tags;
      if (nodeId !== undefined) ofNodes.set(nodeId, [...(ofNodes.get(nodeId) ?? []), resource]);
      else if (uploadId !== undefined) ofUploads.push(resource);
    }
    const uploads = await unknownUploads(store, this.provider, ofUploads, this.signal);
    return [
      ...(await this.ofUnknownNodes(ofNodes)),
      ...uploads.map((resource) => ({ resource, because: 'its upload has no record' })),
    ];
  }

  private async ofUnknownNodes(ofNodes: ReadonlyMap<string, readonly Resource[]>): Promise<readonly LeakCandidate[]> {
    if (ofNodes.size === 0) return [];
    const { store } = this.context;
    const known = new Set(await store.nodes.readIds({ signal: this.signal }));
    const found: LeakCandidate[] = [];
    const add = (resources: readonly Resource[], because: string): void => {
      for (const resource of resources) found.push({ resource, because });
    };
    for (const [nodeId, resources] of ofNodes) {
      if (!known.has(nodeId)) add(resources, 'its node has no record');
      else add(await this.duplicates(nodeId, resources), 'its node is from another launch attempt');
    }
    return found;
  }

  /**
   * Returns the resources that were created for the node but do not belong to it. Reads the node afresh only if the
   * cache shows such resources.
   */
  private async duplicates(nodeId: string, resources: readonly Resource[]): Promise<readonly Resource[]> {
    const { nodes } = this.context.store;
    const cached = nodes.get(nodeId);
    if (cached === undefined || foreignTo(cached.node, resources).length === 0) return [];
    const fresh = await nodes.read(nodeId, { signal: this.signal });
    return fresh === undefined ? resources : foreignTo(fresh.node, resources);
  }
}

/** The tags of a resource of a node, and of an image, without which their owner is not certain. */
const NODE_TAGS = ['nodepool_installation', 'nodepool_pool_name', 'nodepool_launch_attempt'] as const;
const UPLOAD_TAGS = ['nodepool_installation', 'nodepool_image_format'] as const;

function missingTags({ tags }: Resource): readonly string[] {
  const expected = tags.nodepool_node_id === undefined ? UPLOAD_TAGS : NODE_TAGS;
  return expected.filter((tag) => tags[tag] === undefined);
}

function hasCompleteIdentity(resource: Resource): boolean {
  return missingTags(resource).length === 0;
}

/** Returns a key of the resource, which differs from that of a later resource with the same id. */
function keyOf({ kind, externalId, tags }: Resource): string {
  const { nodepool_launch_attempt: attempt = '', nodepool_upload_id: upload = '' } = tags;
  return `${kind} ${externalIdKey(externalId)} ${attempt} ${upload}`;
}

/**
 * Returns the resources that another launch attempt of the node certainly created. Resources without an attempt tag,
 * and those of another pool, which no attempt of the node created, are skipped.
 */
function foreignTo(node: Node, resources: readonly Resource[]): readonly Resource[] {
  const id = node.external_id === null ? undefined : externalIdKey(node.external_id);
  const own = id === undefined ? undefined : resources.find(({ externalId }) => externalIdKey(externalId) === id);
  const recorded = node.progress?.attempt;
  const attempt = recorded === undefined || recorded === '' ? own?.tags.nodepool_launch_attempt : recorded;
  const launching = node.progress?.kind === 'launch';
  return resources.filter((resource) => {
    const of = resource.tags.nodepool_launch_attempt;
    if (of === undefined || resource === own || attempt === undefined) return false;
    if (resource.tags.nodepool_pool_name !== node.pool) return false;
    // A node has one instance. During a launch the attempt may be about to replace it.
    return of !== attempt || (!launching && own !== undefined && resource.kind === own.kind);
  });
}
