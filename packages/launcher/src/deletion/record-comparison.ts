/**
 * The first comparison of a provider's resources with the records after a start. Until it is made, ZooKeeper may
 * contain an older state, in which a node whose launch seems unfinished may long be in use.
 */

import { sleep, type Resource } from '@nodepool/core';
import type { LauncherContext } from '../context.js';

/** Wait after a failed read, in milliseconds. */
const RETRY_MS = 1000;
/** Number of launch attempts that are remembered; the oldest are forgotten first. */
const MAX_ATTEMPTS = 20_000;

export class RecordComparison {
  private made = false;
  /** Id of the first node that was created after the start; undefined until it is read. */
  private start: string | undefined;
  /** Launch attempts that records have named since the start, or since the last new session. */
  private readonly attempts = new Set<string>();

  constructor(
    private readonly context: Pick<LauncherContext, 'store' | 'clock'>,
    provider: string,
    private readonly signal: AbortSignal,
  ) {
    const unsubscribe = context.store.nodes.onChange(({ after }) => {
      const attempt = after?.node.provider === provider ? after.node.progress?.attempt : undefined;
      if (attempt !== undefined) this.remember(attempt);
    });
    // A new session may be with an ensemble that has another state, in which a record's absence means nothing.
    const onSession = (): void => this.attempts.clear();
    context.store.zooKeeper.on('session', onSession);
    const end = (): void => {
      unsubscribe();
      context.store.zooKeeper.off('session', onSession);
    };
    signal.addEventListener('abort', end, { once: true });
  }

  /** Returns true if a record has named the launch attempt since the start, so that its absence means something. */
  hasSeen({ nodepool_launch_attempt: attempt = '' }: Resource['tags']): boolean {
    return this.attempts.has(attempt);
  }

  /** Reads the id of the next node. Resolves when that has succeeded or the signal has aborted. */
  async begin(): Promise<void> {
    const { store, clock } = this.context;
    const { signal } = this;
    while (!signal.aborted && this.start === undefined) {
      try {
        await store.ready({ signal });
        this.start = await store.suspensions.nextNodeId({ signal });
      } catch {
        // ZooKeeper is away, which the store reports.
        await sleep(clock, RETRY_MS, signal).catch(() => undefined);
      }
    }
  }

  /** Ends the comparison, because a listing contradicted no record, or deletions are suspended. */
  finish(): void {
    this.made = true;
  }

  /**
   * Returns true if the comparison is not finished, and a resource is of a node that ZooKeeper had not created at the
   * start and of an attempt that no record has named since. A state that was restored does not contain its node.
   */
  isUnknown(tags: Resource['tags']): boolean {
    const { nodepool_node_id: nodeId = '' } = tags;
    return !this.made && this.start !== undefined && nodeId >= this.start && !this.hasSeen(tags);
  }

  /** Returns true if the node existed before the start, and its record was not compared with the cloud yet. */
  isOpenFor(nodeId: string): boolean {
    return !this.made && (this.start === undefined || nodeId < this.start);
  }

  private remember(attempt: string): void {
    this.attempts.add(attempt);
    if (this.attempts.size <= MAX_ATTEMPTS) return;
    for (const oldest of this.attempts) {
      this.attempts.delete(oldest);
      return;
    }
  }
}
