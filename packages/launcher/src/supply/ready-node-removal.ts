/**
 * Deletes free ready nodes that are too old (`max-age`, `max-ready-age`), or that their label has not needed for its
 * `max-idle-time`: it keeps fewer nodes ready than before, their requests were withdrawn, or their requestors died
 * before they locked the nodes. No node is deleted within the `min-retention-time` of its label.
 *
 * `MinReady` requests the replacement of a node before the node is too old, and the old node is deleted once the
 * replacement is ready. All launchers choose the nodes in the same order.
 */

import { WorkQueue, type Reconciled } from '@nodepool/core';
import type { Change, NodeEntry } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import { agesOf, type NodeAges } from './node-ages.js';
import type { Precedence } from '../precedence/precedence.js';
import type { ReadyTargets } from './ready-targets.js';

const NO_LABELS: readonly string[] = [];
/** Delay of the next check (ms) while another program has the lock of a node. */
const RETRY_MS = 60_000;
/**
 * Time (ms) for which a node that is too old is kept without a replacement. Then one node of the label is deleted at a
 * time, because a full pool cannot launch a replacement before.
 */
const REPLACEMENT_GRACE_MS = 600_000;

/** A free ready node of a label. */
interface Candidate {
  readonly entry: NodeEntry;
  /** Time since which it is free (ms since the epoch). */
  readonly freeSince: number;
  readonly ages: NodeAges;
}

/** When a node is deleted, in milliseconds since the epoch, and why. */
interface Removal {
  readonly at: number;
  readonly reason: string;
  /** True if it is deleted although its label then lacks a node. */
  readonly isForced: boolean;
  /** Number of nodes that the label retains in any case, unless the removal is forced. */
  readonly retained: (label: string) => number;
}

/** The providers of a launcher. */
export interface OwnProviders {
  /** Returns true if the launcher deletes nodes of the provider. */
  serves(provider: string): boolean;
  /** Returns true if the launcher also launches nodes there. */
  launches(provider: string): boolean;
}

export class ReadyNodeRemoval implements Controller {
  /** Labels to be checked, each when one of its nodes may be due. */
  private readonly queue: WorkQueue<string>;
  /**
   * Free ready nodes of all providers by label: the time since when each is free, in milliseconds since the epoch, by
   * its id.
   */
  private readonly free = new Map<string, Map<string, number>>();
  private readonly unsubscribe: (() => void)[];
  private labels: NodepoolConfig['labels'] = new Map();

  constructor(
    private readonly context: LauncherContext,
    private readonly providers: OwnProviders,
    private readonly targets: Pick<ReadyTargets, 'of' | 'heldOf' | 'onChange'>,
    private readonly precedence: Pick<Precedence, 'waitForDeletion'>,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (label) => `delete surplus and old ready nodes of label ${label}`,
      about: (label) => ({ label }),
      reconcile: (label) => this.reconcile(label),
    });
    this.unsubscribe = [
      store.nodes.onChange(this.nodeChanged),
      store.onComplete((complete) => {
        if (complete) this.addAll();
      }),
      targets.onChange((label) => {
        if (this.free.has(label)) this.queue.add(label);
      }),
    ];
    // How long these nodes were allocated before is unknown.
    for (const entry of store.nodes.inState('ready')) this.add(entry, entry.node.state_time * 1000);
  }

  apply({ labels }: NodepoolConfig): void {
    this.labels = labels;
    this.addAll();
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private addAll(): void {
    for (const label of this.free.keys()) this.queue.add(label);
  }

  private readonly nodeChanged = ({ id, before, after }: Change<NodeEntry>): void => {
    const was = labelsOf(before);
    if (after !== undefined && was === labelsOf(after)) {
      // An unlocked node may be due.
      if (before?.locked === true && !after.locked) for (const label of was) this.queue.add(label);
      return;
    }
    for (const label of was) this.free.get(label)?.delete(id);
    if (after !== undefined) this.add(after, this.context.clock.now());
  };

  private add(entry: NodeEntry, since: number): void {
    for (const label of labelsOf(entry)) {
      const nodes = this.free.get(label) ?? new Map<string, number>();
      this.free.set(label, nodes.set(entry.id, since));
      this.queue.add(label);
    }
  }

  private async reconcile(label: string): Promise<Reconciled> {
    const { store, clock } = this.context;
    if (!store.complete) return 'done';
    let preceding = 0;
    let nextMs = Infinity;
    for (const candidate of this.candidates(label)) {
      const removal = this.removalOf(label, candidate, preceding);
      // Nodes that this launcher must not delete count, too, so that all launchers choose the same ones.
      preceding += 1;
      if (!this.isOwn(candidate.entry)) continue;
      const leftMs = removal.at - clock.now();
      const waitMs = leftMs > 0 ? leftMs : this.precedence.waitForDeletion(candidate.entry);
      const refreshed = waitMs > 0 ? undefined : store.nodes.refresh();
      if (refreshed !== undefined) {
        // Other launchers may have handed out some of the nodes.
        await refreshed;
        return { requeueAfterMs: 0 };
      }
      if (waitMs <= 0 && (await this.delete(label, candidate, removal))) {
        // It is not free any more.
        preceding -= 1;
        continue;
      }
      nextMs = Math.min(nextMs, waitMs > 0 ? waitMs : RETRY_MS);
    }
    return nextMs === Infinity ? 'done' : { requeueAfterMs: nextMs };
  }

  /** Returns the free nodes of the label, those that are too old first. */
  private candidates(label: string): readonly Candidate[] {
    const { nodes } = this.context.store;
    const free = [...(this.free.get(label) ?? [])].flatMap(([id, freeSince]): Candidate[] => {
      const entry = nodes.get(id);
      return entry === undefined ? [] : [{ entry, freeSince, ages: agesOf(entry.node, this.labels) }];
    });
    return free.sort(byEnd);
  }

  /** Returns when the node is deleted, given the number of candidates before it: at `Infinity` if it is needed. */
  private removalOf(label: string, { entry, freeSince, ages }: Candidate, preceding: number): Removal {
    const { expiresAt, keptUntil, limit } = ages;
    const tooOld = `it is older than the ${limit} of its label`;
    const isLaunched = this.providers.launches(entry.node.provider ?? '');
    const forced = { isForced: true, retained: this.needed };
    // The node of an existing machine has no replacement.
    if (!isLaunched) return { at: expiresAt, reason: tooOld, ...forced };
    if (this.surplusOf(label, this.held) > preceding) {
      const idleUntil = Math.max(freeSince + (this.labels.get(label)?.maxIdleMs ?? Infinity), keptUntil);
      if (expiresAt <= idleUntil) return { at: expiresAt, reason: tooOld, isForced: false, retained: this.needed };
      const reason = 'no request needs it, and its label has enough ready nodes without it (max-idle-time)';
      return { at: idleUntil, reason, isForced: false, retained: this.held };
    }
    const surplus = this.surplusOf(label, this.needed) - preceding;
    // Its label needed it until a short time ago, and may need it again.
    if (surplus > 0) return { at: expiresAt, reason: tooOld, isForced: false, retained: this.needed };
    if (surplus < 0) return { at: Infinity, reason: tooOld, ...forced };
    return { at: expiresAt + REPLACEMENT_GRACE_MS, reason: `${tooOld}, and has no replacement`, ...forced };
  }

  private readonly needed = (label: string): number => this.targets.of(label).count;
  private readonly held = (label: string): number => this.targets.heldOf(label);

  private isOwn({ node }: NodeEntry): boolean {
    return node.provider !== null && this.providers.serves(node.provider);
  }

  /** Returns the number of free nodes of the label beyond those that it retains. */
  private surplusOf(label: string, retained: (label: string) => number): number {
    return (this.free.get(label)?.size ?? 0) - retained(label);
  }

  /** Marks the node for deletion. Resolves with false if it is locked, or if another label of the node needs it. */
  private async delete(label: string, { entry }: Candidate, { reason, isForced, retained }: Removal): Promise<boolean> {
    const { store, log, decisions } = this.context;
    const { provider, state_time: stateTime, type } = entry.node;
    if (entry.locked || (!isForced && !type.every((each) => this.surplusOf(each, retained) > 0))) return false;
    const handle = await store.nodes.tryLock(entry.id, { from: entry, change: { state: 'deleting' } });
    if (handle === undefined) return false;
    decisions.record('node', entry.id, 'clean-up', 'to be deleted', reason);
    log.info('Deleting a ready node', { node_id: entry.id, provider, label, since: stateTime, reason });
    await handle.release();
    return true;
  }
}

/** Returns the labels that the node is free for. The same list for the same node, if it stays free. */
function labelsOf(entry: NodeEntry | undefined): readonly string[] {
  return entry?.node.state === 'ready' && entry.node.allocated_to === null ? entry.node.type : NO_LABELS;
}

/** Orders the nodes that expire first, then the oldest, nodes of the same age by id. */
function byEnd(a: Candidate, b: Candidate): number {
  const [first, second] = [a.ages.expiresAt, b.ages.expiresAt];
  if (first !== second) return first < second ? -1 : 1;
  return a.entry.node.state_time - b.entry.node.state_time || (a.entry.id < b.entry.id ? -1 : 1);
}
