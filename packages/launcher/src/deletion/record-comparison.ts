/**
 * The first comparison of a provider's resources with the records after a start. Until it is made, ZooKeeper may
 * contain an older state, in which a node whose launch seems unfinished may long be in use.
 */

import { sleep, type Resource } from '@nodepool/core';
import type { LauncherContext } from '../context.js';

/** Wait after a failed read, in milliseconds. */
const RETRY_MS = 1000;

export class RecordComparison {
  private made = false;
  /** Id of the first node that was created after the start; undefined until it is read. */
  private start: string | undefined;
  /** Launch attempts that records have named since the start. */
  private readonly attempts = new Set<string>();
  private readonly unsubscribe: () => void;

  constructor(private readonly context: Pick<LauncherContext, 'store' | 'clock'>) {
    this.unsubscribe = context.store.nodes.onChange(({ after }) => {
      const attempt = after?.node.progress?.attempt;
      if (attempt !== undefined) this.attempts.add(attempt);
    });
  }

  /** Reads the id of the next node. Resolves when that has succeeded or the signal has aborted. */
  async begin(signal: AbortSignal): Promise<void> {
    const { store, clock } = this.context;
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
    this.unsubscribe();
    this.attempts.clear();
  }

  /**
   * Returns true if the comparison is not finished, and a resource is of a node that ZooKeeper had not created at the
   * start and of an attempt that no record has named since. A state that was restored does not contain its node.
   */
  isUnknown({ nodepool_node_id: nodeId = '', nodepool_launch_attempt: attempt = '' }: Resource['tags']): boolean {
    return !this.made && this.start !== undefined && nodeId >= this.start && !this.attempts.has(attempt);
  }

  /** Returns true if the node existed before the start, and its record was not compared with the cloud yet. */
  isOpenFor(nodeId: string): boolean {
    return !this.made && (this.start === undefined || nodeId < this.start);
  }
}
