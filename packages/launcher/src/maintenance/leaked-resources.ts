/**
 * Decides which of the resources that a cloud has just listed are leaked: of our installation and provider, but of no node
 * and no upload that a fresh read still knows, or made for a node by another launch attempt than its own. Only resources
 * that were seen so twice, a minute apart, are deleted, and only when they are a small share of all.
 */

import { externalIdKey, logCloudDeletion, type LeakRound, type Node, type Resource } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { LEAKED_RESOURCES } from '../diagnostics/launcher-metrics.js';
import { unknownUploads } from './leaked-uploads.js';

/** Time between the first sighting and the one that counts, milliseconds. */
const SETTLE_MS = 60_000;
/** Share of a provider's resources that one round may delete; and how many it may whatever the share. */
const BRAKE = { share: 0.1, always: 3 } as const;

/** A resource that looks leaked, and why. */
interface Suspicion {
  readonly resource: Resource;
  readonly because: string;
}

export class LeakedResources implements LeakRound {
  /** When suspicious resources were first seen, `Clock.monotonic` milliseconds, by kind and id. */
  private seen: ReadonlyMap<string, number> = new Map();
  /** Resources without an installation that were reported. */
  private reported: ReadonlySet<string> = new Set();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: string,
    private readonly signal: AbortSignal,
  ) {}

  async leaked(resources: readonly Resource[]): Promise<readonly Resource[]> {
    const { store } = this.context;
    // The server that we ask shall know at least what was written before the listing was made.
    await store.zooKeeper.sync('/', { signal: this.signal });
    const installation = await store.installation.read({ signal: this.signal });
    const ours = resources.filter(
      ({ tags }) =>
        tags.nodepool_provider_name === this.provider && (tags.nodepool_installation ?? installation) === installation,
    );
    const due = this.seenBefore(await this.withoutOwner(ours));
    const isMarked = ({ resource }: Suspicion): boolean => resource.tags.nodepool_installation === installation;
    this.report(due.filter((suspicion) => !isMarked(suspicion)));
    return this.release(due.filter(isMarked), ours.length);
  }

  /** Returns the resources to be deleted: all of them, or none when they are too many. */
  private release(due: readonly Suspicion[], total: number): readonly Resource[] {
    const allowed = Math.max(BRAKE.always, Math.floor(total * BRAKE.share));
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
      'So many resources look leaked that none of them is deleted: make sure that ZooKeeper has not lost its nodes, ' +
        'and that no other installation uses the provider by the same name; then delete them by hand',
      undefined,
      { provider, leaked: due.length, resources: total, allowed, names: due.map(({ resource }) => resource.name) },
    );
    return [];
  }

  /** Resources without an installation may belong to any that has a provider of this name. */
  private report(due: readonly Suspicion[]): void {
    const unreported = due.filter(({ resource }) => !this.reported.has(keyOf(resource)));
    this.reported = new Set(due.map(({ resource }) => keyOf(resource)));
    if (unreported.length === 0) return;
    this.context.log.warn(
      'Resources without the tag nodepool_installation look leaked and are not deleted: make sure that no other ' +
        'installation uses the provider by the same name; then delete them by hand',
      { provider: this.provider, names: unreported.map(({ resource }) => resource.name) },
    );
  }

  private seenBefore(suspicious: readonly Suspicion[]): Suspicion[] {
    const now = this.context.clock.monotonic();
    const seen = new Map<string, number>();
    const due: Suspicion[] = [];
    for (const suspicion of suspicious) {
      const key = keyOf(suspicion.resource);
      const first = this.seen.get(key) ?? now;
      seen.set(key, first);
      if (now - first >= SETTLE_MS) due.push(suspicion);
    }
    this.seen = seen;
    return due;
  }

  private async withoutOwner(ours: readonly Resource[]): Promise<readonly Suspicion[]> {
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

  private async ofUnknownNodes(ofNodes: ReadonlyMap<string, readonly Resource[]>): Promise<readonly Suspicion[]> {
    if (ofNodes.size === 0) return [];
    const { store } = this.context;
    const known = new Set(await store.nodes.readIds({ signal: this.signal }));
    const found: Suspicion[] = [];
    const add = (resources: readonly Resource[], because: string): void => {
      for (const resource of resources) found.push({ resource, because });
    };
    for (const [nodeId, resources] of ofNodes) {
      if (!known.has(nodeId)) add(resources, 'its node has no record');
      else add(await this.twins(nodeId, resources), 'its node is from another launch attempt');
    }
    return found;
  }

  /** Resources that were made for the node but are not its own. The cache says whether it is worth a read. */
  private async twins(nodeId: string, resources: readonly Resource[]): Promise<readonly Resource[]> {
    const { nodes } = this.context.store;
    const cached = nodes.get(nodeId);
    if (cached === undefined || foreignTo(cached.node, resources).length === 0) return [];
    const fresh = await nodes.read(nodeId, { signal: this.signal });
    return fresh === undefined ? resources : foreignTo(fresh.node, resources);
  }
}

function keyOf({ kind, externalId }: Resource): string {
  return `${kind} ${externalIdKey(externalId)}`;
}

/** What is certainly of another launch attempt than the node's own. A resource without an attempt is not ours to judge. */
function foreignTo(node: Node, resources: readonly Resource[]): readonly Resource[] {
  const id = node.external_id === null ? undefined : externalIdKey(node.external_id);
  const own = id === undefined ? undefined : resources.find(({ externalId }) => externalIdKey(externalId) === id);
  const recorded = node.progress?.attempt;
  const attempt = recorded === undefined || recorded === '' ? own?.tags.nodepool_launch_attempt : recorded;
  const launching = node.progress?.kind === 'launch';
  return resources.filter((resource) => {
    const of = resource.tags.nodepool_launch_attempt;
    if (of === undefined || resource === own || attempt === undefined) return false;
    // A node has one instance. While it is being launched, its attempt may be about to replace that.
    return of !== attempt || (!launching && own !== undefined && resource.kind === own.kind);
  });
}
