/**
 * Decides which of the resources in a cloud's listing are leaked. A resource of this installation and provider is
 * leaked if a fresh read finds neither its node nor its upload, or if another launch attempt of the node created it.
 * Leaked resources are deleted after two sightings at least a minute apart, only if their tags are complete, and only
 * if they are a small share of all resources.
 *
 * Too large a share, and resources of nodes that ZooKeeper has not created, show that records are lost or restored.
 * Deletions are then suspended until an operator confirms.
 */

import { externalIdKey, logCloudDeletion, type LeakFilter, type Resource } from '@nodepool/core';
import { missingTags, unrecordedResources, type Unrecorded } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import { LEAKED_RESOURCES, UNRECORDED_RESOURCES } from '../metrics/launcher-metrics.js';
import { ReportedGauge } from '@nodepool/daemon';
import type { RecordComparison } from '../deletion/record-comparison.js';

/** Minimum time between the first sighting of a leaked resource and its deletion, in milliseconds. */
const SETTLE_MS = 60_000;
/**
 * Limits of the deletions in one round: a share of the provider's resources of nodes or of uploads, or a number that is
 * allowed. If most of the resources look leaked, only `unseen` of them may be of attempts that no record has named
 * since the start.
 */
const DELETION_LIMIT = { share: 0.1, always: 3, unseen: 1 } as const;
/** Number of resources that a reason names. */
const NAMED = 3;
const NODE_ID = /^[0-9]{10}$/;

/** A resource that looks leaked, since `Clock.monotonic` milliseconds. */
interface Sighting extends Unrecorded {
  readonly since: number;
  /** True if ZooKeeper had not created its node when it was first seen. */
  readonly isUnknown: boolean;
}

export class LeakedResources implements LeakFilter {
  private seen: ReadonlyMap<string, Sighting> = new Map();
  /** Value of `endsSeen` when the sightings began. */
  private endsSeen: number;
  /** Keys of the resources whose deletion is counted; a cloud may list them for several rounds after that. */
  private deleted: ReadonlySet<string> = new Set();
  /** Keys of the reported resources whose tags are incomplete. */
  private reported: ReadonlySet<string> = new Set();
  private readonly unrecorded: ReportedGauge<'provider' | 'kind'>;

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: string,
    private readonly comparison: RecordComparison,
    private readonly signal: AbortSignal,
  ) {
    this.unrecorded = new ReportedGauge(context.metrics, UNRECORDED_RESOURCES);
    this.endsSeen = context.store.suspensions.endsSeen(provider);
  }

  /** Removes the metrics when the provider stops. */
  withdraw(): void {
    this.unrecorded.withdraw();
  }

  /** Called after each complete listing. Ends the comparison, unless resources of unknown nodes must be seen again. */
  listed(): void {
    if (!this.hasSeenUnknown()) this.comparison.finish();
  }

  async leaked(resources: readonly Resource[]): Promise<readonly Resource[]> {
    const { store } = this.context;
    const { signal } = this;
    // The sync makes the ZooKeeper server return at least all records that were written before the listing was made.
    await store.zooKeeper.sync('/', { signal });
    const installation = await store.installation.read({ signal });
    const ours = resources.filter(
      ({ tags }) =>
        tags.nodepool_provider_name === this.provider && (tags.nodepool_installation ?? installation) === installation,
    );
    const next = await store.suspensions.nextNodeId({ signal });
    const found = await unrecordedResources(store, this.provider, ours, { signal });
    await this.forgetIfConfirmed();
    const due = this.seenBefore(found, next);
    this.report(due.filter(({ resource }) => !hasCompleteIdentity(resource)));
    const identified = due.filter(({ resource }) => hasCompleteIdentity(resource));
    this.count(identified);
    await this.suspendIfContradicted(identified, ours);
    const isSuspended = await this.isSuspended();
    if (isSuspended) this.comparison.finish();
    return isSuspended ? [] : this.release(identified);
  }

  /**
   * Forgets the sightings if an operator has confirmed the records since, even between two rounds: every resource is
   * seen anew, and judged by its present tags.
   */
  private async forgetIfConfirmed(): Promise<void> {
    const endsSeen = this.context.store.suspensions.endsSeen(this.provider);
    if (endsSeen === this.endsSeen || (await this.isSuspended())) return;
    this.endsSeen = endsSeen;
    if (this.hasSeenUnknown()) this.comparison.finish();
    this.seen = new Map();
  }

  private hasSeenUnknown(): boolean {
    return [...this.seen.values()].some(({ isUnknown }) => isUnknown);
  }

  private async isSuspended(): Promise<boolean> {
    const { suspensions } = this.context.store;
    return (await suspensions.check(this.provider, { signal: this.signal })) !== undefined;
  }

  /** Suspends deletions if the resources show that records are lost, or that an older state was restored. */
  private async suspendIfContradicted(due: readonly Sighting[], ours: readonly Resource[]): Promise<void> {
    if (due.length === 0) return;
    const { suspensions } = this.context.store;
    const unknown = due.filter(({ isUnknown }) => isUnknown);
    if (unknown.length > 0) {
      const what = `provider ${this.provider} has ${unknown.length} resources of nodes that ZooKeeper has not created`;
      await suspensions.suspend(null, `${what}: ${namesOf(unknown)}`, { signal: this.signal });
      return;
    }
    for (const isOfKind of [isOfNode, (resource: Resource) => !isOfNode(resource)]) {
      const without = due.filter(({ resource }) => isOfKind(resource));
      const total = ours.filter(isOfKind).length;
      const unseen = without.filter(({ resource }) => !this.comparison.hasSeen(resource.tags)).length;
      const isMost = unseen > DELETION_LIMIT.unseen && unseen * 2 > total;
      const allowed = Math.max(DELETION_LIMIT.always, Math.floor(total * DELETION_LIMIT.share));
      if (!isMost && without.length <= allowed) continue;
      const what = `${without.length} of ${total} resources of provider ${this.provider} have no record`;
      await suspensions.suspend(this.provider, `${what}: ${namesOf(without)}`, { signal: this.signal });
      return;
    }
  }

  private release(due: readonly Sighting[]): readonly Resource[] {
    const { log, metrics } = this.context;
    const { provider } = this;
    const { deleted } = this;
    this.deleted = new Set(due.map(({ resource }) => keyOf(resource)));
    for (const { resource, because } of due) {
      if (!deleted.has(keyOf(resource))) metrics.count(LEAKED_RESOURCES, { provider, kind: resource.kind });
      logCloudDeletion(log.with({ provider, tags: resource.tags }), resource, because);
    }
    return due.map(({ resource }) => resource);
  }

  private count(due: readonly Sighting[]): void {
    const { provider } = this;
    const kinds = new Map<string, number>();
    for (const { resource } of due) kinds.set(resource.kind, (kinds.get(resource.kind) ?? 0) + 1);
    for (const [kind, count] of kinds) this.unrecorded.set({ provider, kind }, count);
    this.unrecorded.end();
  }

  /**
   * Reports leaked resources with incomplete tags. Any installation with a provider of this name may own those without
   * an installation, and a person may have created the others.
   */
  private report(due: readonly Sighting[]): void {
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

  /** Records the sightings and returns those that are due. `next` is the first node that ZooKeeper has not created. */
  private seenBefore(found: readonly Unrecorded[], next: string): Sighting[] {
    const now = this.context.clock.monotonic();
    const seen = new Map<string, Sighting>();
    for (const unrecorded of found) {
      const { tags: first, otherOwners = [] } = unrecorded.resource;
      const isNew = (): boolean =>
        hasCompleteIdentity(unrecorded.resource) &&
        [first, ...otherOwners].some(
          (tags) =>
            NODE_ID.test(tags.nodepool_node_id ?? '') &&
            ((tags.nodepool_node_id ?? '') >= next || this.comparison.isUnknown(tags)),
        );
      const { since = now, isUnknown = isNew() } = this.seen.get(keyOf(unrecorded.resource)) ?? {};
      seen.set(keyOf(unrecorded.resource), { ...unrecorded, since, isUnknown });
    }
    this.seen = seen;
    return [...seen.values()].filter(({ since }) => now - since >= SETTLE_MS);
  }
}

function hasCompleteIdentity(resource: Resource): boolean {
  return missingTags(resource).length === 0;
}

function isOfNode({ tags }: Resource): boolean {
  return tags.nodepool_node_id !== undefined;
}

function namesOf(sightings: readonly Sighting[]): string {
  const names = sightings.slice(0, NAMED).map(({ resource }) => `${resource.kind} ${resource.name}`);
  return names.length < sightings.length ? `${names.join(', ')}, …` : names.join(', ');
}

/** Returns a key of the resource, which differs from that of a later resource with the same id. */
function keyOf({ kind, externalId, tags }: Resource): string {
  const { nodepool_launch_attempt: attempt = '', nodepool_upload_id: upload = '' } = tags;
  return JSON.stringify([kind, externalIdKey(externalId), attempt, upload]);
}
