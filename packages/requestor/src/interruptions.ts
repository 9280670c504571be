/** Watches the records of leased nodes for the loss of their instances, which launchers write there. */

import { Latch, linkSignals, untilAborted, type NodeInterruption } from '@nodepool/core';
import { nodeCodec, nodePath } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import type { Interruption } from './api.js';
import { pauseAfter, type RequestorContext } from './context.js';

export type InterruptionListener = (interruption: Interruption) => void;

export class InterruptionWatch {
  private readonly known = new Map<string, NodeInterruption>();
  private readonly listeners = new Set<InterruptionListener>();
  private isStarted = false;

  constructor(
    private readonly context: RequestorContext,
    private readonly nodeIds: readonly string[],
    /** Aborts when the lease ends. */
    private readonly ended: AbortSignal,
  ) {}

  /** Calls the listener for each interruption, and for those that are known. The first listener starts the watch. */
  add(listener: InterruptionListener): () => void {
    this.listeners.add(listener);
    for (const [id, interruption] of this.known) this.notify(listener, interruptionOf(id, interruption));
    if (!this.isStarted && !this.ended.aborted) {
      this.isStarted = true;
      const linked = linkSignals(this.ended, this.context.closing);
      void Promise.all(this.nodeIds.map((id) => this.follow(id, linked.signal))).finally(() => linked.unlink());
    }
    return () => this.listeners.delete(listener);
  }

  /** Follows the record of a node until the lease ends or the record is deleted. Never rejects. */
  private async follow(id: string, signal: AbortSignal): Promise<void> {
    const { zooKeeper, log } = this.context;
    const path = nodePath(id);
    try {
      for (;;) {
        const changed = new Latch(false);
        try {
          const { data, stat } = await zooKeeper.get(path, { signal, watch: () => changed.open() });
          const decoded = nodeCodec.decode(data, { id }, stat.mtime / 1000);
          if (decoded.ok) this.update(id, decoded.source.value.interruption);
        } catch (error) {
          if (isZooKeeperError(error, 'no-node')) return;
          await pauseAfter(this.context, error, signal);
          continue;
        }
        await untilAborted(changed.wait(), signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      log.warn('The record of a node cannot be read; its interruption would not be reported', { node_id: id, error });
    }
  }

  private update(id: string, found: NodeInterruption | null): void {
    const known = this.known.get(id);
    if (found === null) {
      this.known.delete(id);
      return;
    }
    this.known.set(id, found);
    if (known?.kind === found.kind && known.ends_at === found.ends_at) return;
    for (const listener of [...this.listeners]) this.notify(listener, interruptionOf(id, found));
  }

  private notify(listener: InterruptionListener, interruption: Interruption): void {
    try {
      listener(interruption);
    } catch (error) {
      this.context.log.error('A listener of interruptions has failed', error, { node_id: interruption.nodeId });
    }
  }
}

function interruptionOf(nodeId: string, { kind, reason, time, ends_at: endsAt }: NodeInterruption): Interruption {
  return { nodeId, kind, reason, noticedAt: time * 1000, endsAt: endsAt === null ? undefined : endsAt * 1000 };
}
