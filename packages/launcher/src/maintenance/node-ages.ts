/**
 * Nodes that have been ready for longer than their label's `max-ready-age`, or held for longer than their
 * `hold_expiration` or `max-hold-age`, are to be deleted. Each waits for its own moment; nothing looks at all of them.
 */

import { TimerQueue, type Node, type Timer } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import type { LauncherContext } from '../context.js';

/** After a failure that says nothing about when to try again; and when somebody else was faster but the node is still there. */
const RETRY_MS = 60_000;

export class NodeAges {
  private readonly timers: TimerQueue;
  private readonly waiting = new Map<string, { readonly due: number; readonly timer: Timer }>();
  private readonly unsubscribe: (() => void)[];
  private limits: Pick<NodepoolConfig, 'labels' | 'maxHoldAgeMs'> = { labels: new Map(), maxHoldAgeMs: Infinity };

  constructor(
    private readonly context: LauncherContext,
    /** Whether nodes of this provider are ours to care for. */
    private readonly serves: (provider: string) => boolean,
  ) {
    this.timers = new TimerQueue(context.clock);
    const { store } = context;
    this.unsubscribe = [
      store.nodes.onChange(({ id, after }) => this.consider(id, after)),
      store.onComplete((complete) => {
        if (complete) this.considerAll();
      }),
    ];
  }

  /** Goes on with another configuration. */
  apply(config: NodepoolConfig): void {
    this.limits = config;
    this.considerAll();
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    for (const { timer } of this.waiting.values()) timer.cancel();
    this.waiting.clear();
  }

  private considerAll(): void {
    const { nodes } = this.context.store;
    for (const state of ['ready', 'hold'] as const) {
      for (const entry of [...nodes.inState(state)]) this.consider(entry.id, entry);
    }
  }

  private consider(id: string, entry: NodeEntry | undefined): void {
    const due = entry === undefined || !this.isOurs(entry) ? Infinity : this.expiry(entry.node);
    const waiting = this.waiting.get(id);
    if (waiting?.due === due) return;
    waiting?.timer.cancel();
    this.waiting.delete(id);
    if (due !== Infinity) this.wait(id, due, due - this.context.clock.now());
  }

  /** `due` by the wall clock, which may have jumped until then: it is looked at again. */
  private wait(id: string, due: number, delayMs: number): void {
    const timer = this.timers.schedule(this.context.clock.monotonic() + Math.max(delayMs, 0), () => {
      this.waiting.delete(id);
      this.expire(id);
    });
    this.waiting.set(id, { due, timer });
  }

  private isOurs({ node, locked }: NodeEntry): boolean {
    return !locked && node.provider !== null && this.serves(node.provider);
  }

  /** When the node is too old, milliseconds since the epoch; `Infinity`: never. */
  private expiry(node: Node): number {
    // A node that somebody has been promised is not taken away from them.
    if (node.state === 'ready') return node.allocated_to === null ? since(node) + this.maxReadyAge(node) : Infinity;
    return node.state === 'hold' ? since(node) + Math.min(holdAge(node), this.limits.maxHoldAgeMs) : Infinity;
  }

  private maxReadyAge({ type }: Node): number {
    let age = Infinity;
    for (const label of type) age = Math.min(age, this.limits.labels.get(label)?.maxReadyAgeMs ?? Infinity);
    return age;
  }

  private expire(id: string): void {
    const { store, tasks, clock, log } = this.context;
    const entry = store.nodes.get(id);
    // Incomplete, it is considered again when it is not any more.
    if (entry === undefined || !store.complete) return;
    if (!this.isOurs(entry) || this.expiry(entry.node) > clock.now()) {
      this.consider(id, entry);
      return;
    }
    // Until the change shows, or else the next attempt.
    this.wait(id, this.expiry(entry.node), RETRY_MS);
    tasks.run(`delete node ${id} for its age`, async () => {
      try {
        await this.markForDeletion(entry);
      } catch (error) {
        log.warn('A node that is too old could not be marked for deletion; it is tried again', { node_id: id, error });
      }
    });
  }

  private async markForDeletion(entry: NodeEntry): Promise<void> {
    const { store, log, decisions } = this.context;
    const handle = await store.nodes.tryLock(entry.id, { from: entry, change: { state: 'deleting' } });
    if (handle === undefined) return;
    const { state, state_time: stateTime, provider } = entry.node;
    const limit = state === 'hold' ? 'hold_expiration or max-hold-age' : 'max-ready-age';
    decisions.record('node', entry.id, 'clean-up', 'to be deleted', `it is older than ${limit}`);
    log.info('A node has been ready or held for too long; it is deleted', {
      node_id: entry.id,
      provider,
      was: state,
      since: stateTime,
    });
    await handle.release();
  }
}

function since({ state_time: seconds }: Node): number {
  return seconds * 1000;
}

/** Milliseconds for which the requestor wants the node held; 0, nothing and nonsense: for ever. */
function holdAge({ hold_expiration: seconds }: Node): number {
  const age = typeof seconds === 'string' && seconds.trim() !== '' ? Number(seconds) : seconds;
  return typeof age === 'number' && age > 0 ? age * 1000 : Infinity;
}
