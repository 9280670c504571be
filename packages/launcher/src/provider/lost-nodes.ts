/**
 * The ready nodes of a provider whose instance is lost, according to its listings. They are deleted once enough of the
 * listings agree, so that the launcher replaces them.
 */

import type { Logger } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import { unixSeconds, type LauncherContext } from '../context.js';
import { deleteFreeNode } from '../deletion/delete-free-node.js';
import type { MissingInstances } from '@nodepool/status';
import { INTERRUPTED_NODES, LOST_NODES, offerLabels, UNUSABLE_NODES } from '../metrics/launcher-metrics.js';
import { ReportedGauge } from '@nodepool/daemon';
import {
  confirmationDue,
  CONFIRMED_AFTER_MS,
  isLost,
  isMissing,
  verdictOf,
  type Comparison,
  type InstanceListing,
  type InstanceLoss,
  type Loss,
} from './instance-verdict.js';

/**
 * Limits of the missing instances of a provider: a share of its nodes, or a number that is always plausible. More look
 * like a listing of another project, or of a part of the cloud.
 */
const MISSING_LIMIT = { share: 0.1, always: 3 } as const;

interface LostNode {
  readonly entry: NodeEntry;
  readonly loss: Loss;
  readonly endsAt: number | undefined;
}

export interface LostNodesOptions {
  readonly context: LauncherContext;
  readonly log: Logger;
  readonly provider: string;
  /** Aborts when the provider is stopped. */
  readonly signal: AbortSignal;
}

export class LostNodes {
  private losses: ReadonlyMap<string, Loss> = new Map();
  private implausible: MissingInstances | undefined;
  /** True if a later listing than the one of `losses` was not compared with the nodes. */
  private isSkipped = false;
  private readonly gauge: ReportedGauge<'provider' | 'reason'>;

  constructor(private readonly options: LostNodesOptions) {
    this.gauge = new ReportedGauge(options.context.metrics, UNUSABLE_NODES);
  }

  /** The missing instances of the latest listing, if they are too many to be deleted. */
  get missingInstances(): MissingInstances | undefined {
    return this.implausible;
  }

  /** Returns when a listing may confirm what the latest one has shown (`Clock.monotonic`, ms), or undefined. */
  confirmationDue(latest: InstanceListing): number | undefined {
    return confirmationDue(this.losses.values(), latest);
  }

  /** Begins the confirmation of all losses again, because a listing is not compared with the nodes. */
  skip(): void {
    this.isSkipped = true;
  }

  /** Returns the ids of the ready nodes that are neither allocated nor locked. */
  freeNodes(): ReadonlySet<string> {
    return new Set(this.options.context.store.nodes.freeOf(this.options.provider));
  }

  /**
   * Takes what a listing shows, and deletes the nodes that are certainly lost. `candidates` are the nodes that were
   * ready and free before the listing was requested. `isFoundAgain` is true if a lost node was found again; `written`
   * resolves once the records are written.
   */
  apply(
    { askedAt }: InstanceListing,
    { total, missing, lost }: Comparison,
    candidates: ReadonlySet<string>,
  ): { readonly isFoundAgain: boolean; readonly written: Promise<void> } {
    const before = this.losses;
    const losses = new Map<string, Loss>();
    const due: LostNode[] = [];
    for (const { entry, verdict } of lost) {
      const { kind, reason, endsAt } = verdict;
      if (!isFree(entry) || !candidates.has(entry.id)) continue;
      const known = this.isSkipped ? undefined : before.get(entry.id);
      const loss = { kind, reason, first: known?.kind === kind ? known.first : askedAt };
      losses.set(entry.id, loss);
      if (askedAt - loss.first >= CONFIRMED_AFTER_MS[kind]) due.push({ entry, loss, endsAt });
    }
    this.losses = losses;
    this.isSkipped = false;
    this.report(before);
    this.judge(missing, total);
    const isFoundAgain = [...before.keys()].some((id) => !losses.has(id));
    return { isFoundAgain, written: this.release(due) };
  }

  /**
   * Deletes a node that has become free, if the listing shows a loss that needs no confirmation: its request was given
   * another node because of that loss.
   */
  freed(entry: NodeEntry, listing: InstanceListing): void {
    const { context, provider } = this.options;
    const verdict = verdictOf(entry.node, listing);
    if (!isLost(verdict) || CONFIRMED_AFTER_MS[verdict.kind] > 0) return;
    const { kind, reason, endsAt } = verdict;
    const lost = { entry, loss: { kind, reason, first: listing.askedAt }, endsAt };
    context.tasks.run(`delete a lost node of provider ${provider}`, () => this.release([lost]));
  }

  withdraw(): void {
    this.gauge.withdraw();
  }

  /** Reports the losses that the listing has shown first, and the nodes that it has shown again. */
  private report(before: ReadonlyMap<string, Loss>): void {
    const { context, provider, log } = this.options;
    const counts = new Map<InstanceLoss, number>();
    for (const [id, { kind, reason }] of this.losses) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      if (before.get(id)?.kind === kind) continue;
      log.info('A ready node is not handed out', { node_id: id, reason });
      this.decided(id, 'is not handed out', reason);
    }
    for (const id of before.keys()) {
      if (this.losses.has(id) || context.store.nodes.get(id)?.node.state !== 'ready') continue;
      log.info('A ready node can be handed out again', { node_id: id });
      this.decided(id, 'can be handed out again', 'its instance runs');
    }
    for (const [reason, count] of counts) this.gauge.set({ provider, reason }, count);
    this.gauge.end();
  }

  /** Decides whether the number of missing instances is plausible. */
  private judge(missing: number, total: number): void {
    const { context, log } = this.options;
    const allowed = Math.max(MISSING_LIMIT.always, Math.floor(total * MISSING_LIMIT.share));
    const before = this.implausible;
    this.implausible = missing <= allowed ? undefined : { missing, total, since: before?.since ?? context.clock.now() };
    if (this.implausible !== undefined && before === undefined) {
      log.error(
        'The cloud does not list the instances of too many nodes, so none of these nodes is deleted: make sure that ' +
          'the provider has the right project, region and credentials, and that the cloud lists all instances; then ' +
          'delete the nodes with "nodepool delete"',
        undefined,
        { missing, nodes: total, allowed },
      );
    } else if (this.implausible === undefined && before !== undefined) {
      log.info('The cloud lists the instances of the nodes again', { missing, nodes: total });
    }
  }

  /** Marks the nodes for deletion. The next listing repeats a failed write. */
  private async release(due: readonly LostNode[]): Promise<void> {
    for (const each of due) {
      if (this.implausible === undefined || !isMissing(each.loss.kind)) await this.delete(each);
    }
  }

  private async delete({ entry, loss: { kind, reason }, endsAt }: LostNode): Promise<void> {
    const { context, provider, signal, log } = this.options;
    const fields = { node_id: entry.id, external_id: entry.node.external_id, reason };
    const interruption = {
      kind,
      reason,
      time: unixSeconds(context),
      ends_at: endsAt === undefined ? null : endsAt / 1000,
    };
    // The instance of another node must not be deleted.
    const change = kind === 'replaced' ? { external_id: null, interruption } : { interruption };
    const by = `${provider}/${entry.node.pool ?? ''}`;
    try {
      if (signal.aborted || !(await deleteFreeNode(context, entry, by, reason, change))) return;
      context.metrics.count(LOST_NODES, { provider, reason: kind });
      context.metrics.count(INTERRUPTED_NODES, { ...offerLabels(entry.node), provider, state: 'ready', reason: kind });
      log.warn('A ready node has lost its instance; deleting it', fields);
    } catch (error) {
      if (!signal.aborted) log.warn('A lost node could not be marked for deletion; retrying', { ...fields, error });
    }
  }

  private decided(id: string, what: string, reason: string): void {
    const { context, provider } = this.options;
    const pool = context.store.nodes.get(id)?.node.pool ?? '';
    context.decisions.record('node', id, `${provider}/${pool}`, what, reason);
  }
}

function isFree({ node, locked }: NodeEntry): boolean {
  return node.state === 'ready' && node.allocated_to === null && !locked;
}
