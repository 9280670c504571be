/**
 * Which of the resources that a cloud has just listed are leaked: of our provider, but of no node and no upload that a
 * fresh read still knows, or made for a node by another launch attempt than the one that it is from. Only what was seen
 * so twice, a minute apart, is to be deleted, and only when that is a small share of all.
 */

import { externalIdKey, type LeakRound, type Node, type Resource } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { LEAKED_RESOURCES } from '../observe/launcher-metrics.js';
import { unknownUploads } from './leaked-uploads.js';

/** Time between the first sighting and the one that counts, milliseconds. */
const SETTLE_MS = 60_000;
/** Share of a provider's resources that one round may delete; and how many it may whatever the share. */
const BRAKE = { share: 0.1, always: 3 } as const;

export class LeakedResources implements LeakRound {
  /** When suspicious resources were first seen, `Clock.monotonic` milliseconds, by kind and id. */
  private seen: ReadonlyMap<string, number> = new Map();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: string,
    private readonly signal: AbortSignal,
  ) {}

  async leaked(resources: readonly Resource[]): Promise<readonly Resource[]> {
    const ours = resources.filter(({ tags }) => tags.nodepool_provider_name === this.provider);
    const suspicious = await this.withoutOwner(ours);
    const due = this.seenBefore(suspicious);
    if (due.length === 0) return [];
    const allowed = Math.max(BRAKE.always, Math.floor(ours.length * BRAKE.share));
    const { log, metrics } = this.context;
    if (due.length <= allowed) {
      for (const { kind } of due) metrics.count(LEAKED_RESOURCES, { provider: this.provider, kind });
      return due;
    }
    log.error(
      'So many resources look leaked that none of them is deleted: make sure that ZooKeeper has not lost its nodes, ' +
        'and that no other installation uses the provider by the same name; then delete them by hand',
      undefined,
      {
        provider: this.provider,
        leaked: due.length,
        resources: ours.length,
        allowed,
        names: due.map(({ name }) => name),
      },
    );
    return [];
  }

  private seenBefore(suspicious: readonly Resource[]): Resource[] {
    const now = this.context.clock.monotonic();
    const seen = new Map<string, number>();
    const due: Resource[] = [];
    for (const resource of suspicious) {
      const key = keyOf(resource);
      const first = this.seen.get(key) ?? now;
      seen.set(key, first);
      if (now - first >= SETTLE_MS) due.push(resource);
    }
    this.seen = seen;
    return due;
  }

  private async withoutOwner(ours: readonly Resource[]): Promise<readonly Resource[]> {
    const { store } = this.context;
    const ofNodes = new Map<string, Resource[]>();
    const ofUploads: Resource[] = [];
    for (const resource of ours) {
      const { nodepool_node_id: nodeId, nodepool_upload_id: uploadId } = resource.tags;
      if (nodeId !== undefined) ofNodes.set(nodeId, [...(ofNodes.get(nodeId) ?? []), resource]);
      else if (uploadId !== undefined) ofUploads.push(resource);
    }
    // The server that we ask shall know at least what was written before the listing was made.
    await store.zooKeeper.sync('/', { signal: this.signal });
    return [
      ...(await this.ofUnknownNodes(ofNodes)),
      ...(await unknownUploads(store, this.provider, ofUploads, this.signal)),
    ];
  }

  private async ofUnknownNodes(ofNodes: ReadonlyMap<string, readonly Resource[]>): Promise<readonly Resource[]> {
    if (ofNodes.size === 0) return [];
    const { store } = this.context;
    const known = new Set(await store.nodes.readIds({ signal: this.signal }));
    const found: Resource[] = [];
    for (const [nodeId, resources] of ofNodes) {
      if (!known.has(nodeId)) found.push(...resources);
      else found.push(...(await this.twins(nodeId, resources)));
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
