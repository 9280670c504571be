/** Nodes that are locked for this program. */

import type { JsonValue, NodeData } from '@nodepool/core';
import { nodePath, type NodeHandle } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import type { HoldOptions, Interruption, JobResult, LeasedNode, ReturnOptions, WaitOptions } from './api.js';
import { pauseAfter, withLimits, type RequestorContext } from './context.js';
import { LeaseLostError } from './errors.js';
import { untilAbsent } from './follow.js';
import { InterruptionWatch } from './interruptions.js';
import { leasedNode } from './record.js';

/**
 * The nodes of one request. They belong to this program until `return` or `hold`, or until `lost` aborts. A lost lease
 * cannot be regained, because launchers delete unlocked nodes in use.
 *
 * A durable lease belongs to its owner until one of the owner's processes ends it. It survives the session.
 */
export class Lease {
  /**
   * Aborts with `LeaseLostError` when the locks are lost: before any launcher deletes a node, unless this process was
   * suspended. After a suspension, `confirm` asks the server. A durable lease is lost when another process adopts or
   * ends it, which this process learns once it reaches ZooKeeper.
   */
  readonly lost: AbortSignal;
  private readonly lostController = new AbortController();
  private readonly ended = new AbortController();
  private readonly interruptions: InterruptionWatch;
  private ending: Promise<void> | undefined;

  /** @internal */
  constructor(
    private readonly context: RequestorContext,
    private readonly handles: readonly NodeHandle[],
    private readonly labels: readonly string[],
    /** Name of the owner of a durable lease; undefined for a lease that ends with the session. */
    readonly owner?: string,
  ) {
    this.lost = this.lostController.signal;
    this.interruptions = new InterruptionWatch(context, this.nodeIds, this.ended.signal);
    for (const { lock } of handles) {
      const lose = (): void => this.lose(lock.lost.reason);
      if (lock.lost.aborted) lose();
      else lock.lost.addEventListener('abort', lose, { once: true });
    }
  }

  /** In the order of the request's labels. */
  get nodes(): readonly LeasedNode[] {
    return this.handles.map(({ node }, index) => leasedNode(node, this.labels[index] ?? ''));
  }

  /**
   * Calls the listener when the cloud announces that it takes the instance of a node away, and when launchers find that
   * an instance is lost; at once for the interruptions that are already known. The lease remains valid: return the
   * nodes as usual. Returns a function that removes the listener.
   */
  onInterruption(listener: (interruption: Interruption) => void): () => void {
    return this.interruptions.add(listener);
  }

  /** Marks the nodes `in-use`. Rejects with `LeaseLostError` if the locks are lost. */
  async use(options: WaitOptions & { readonly userData?: JsonValue } = {}): Promise<void> {
    const { userData } = options;
    const change = { state: 'in-use', ...(userData === undefined ? {} : { user_data: userData }) } as const;
    await withLimits(this.context, `nodes ${this.ids} were not marked in-use`, options, (signal) =>
      this.whileHeld(signal, async () => {
        await Promise.all(this.handles.map((handle) => handle.update(change, { signal })));
      }),
    );
  }

  /** Resolves if the server confirms that every lock is held now. Rejects with `LeaseLostError` if one is lost. */
  async confirm(options: WaitOptions = {}): Promise<void> {
    const checks = this.handles.map(({ lock }) => lock.fence);
    await withLimits(this.context, `the locks of nodes ${this.ids} were not confirmed`, options, (signal) =>
      this.whileHeld(signal, async () => {
        await this.context.zooKeeper.transaction(checks, { signal });
      }),
    );
  }

  /**
   * Returns the nodes: launchers delete used nodes and hand the others to other requests. With the result of the job,
   * launchers judge new images. Idempotent: only the first call counts. Never rejects, because launchers also delete
   * nodes in use whose locks are lost; only a durable lease rejects if the requestor is closed or has no permission
   * before the nodes are returned, and remains then.
   */
  async return({ result }: ReturnOptions = {}): Promise<void> {
    this.ended.abort();
    if (this.owner === undefined) this.ending ??= this.giveBack(result);
    else this.ending ??= this.giveBackDurably(result);
    await this.ending;
  }

  /** Holds the nodes for inspection and releases the locks. Rejects with `LeaseLostError` if the locks are lost. */
  async hold({ comment, job, expirationSeconds, result }: HoldOptions = {}): Promise<void> {
    this.throwIfLost();
    const change: Partial<NodeData> = {
      state: 'hold',
      ...(comment === undefined ? {} : { comment }),
      ...(job === undefined ? {} : { hold_job: job }),
      ...(result === undefined ? {} : { job_result: result }),
      ...(expirationSeconds === undefined ? {} : { hold_expiration: expirationSeconds }),
    };
    this.ended.abort();
    const isDurable = this.owner !== undefined;
    const holding = Promise.all(
      this.handles.map((handle) => (isDurable ? this.unlock(handle, change) : handle.release(change))),
    );
    this.ending ??= holding.then(
      () => undefined,
      () => undefined,
    );
    try {
      await holding;
    } catch (error) {
      throw isLostOwnership(error) ? new LeaseLostError(this.nodeIds, error) : error;
    }
  }

  /** Resolves once the records of the nodes are removed, after the cloud has deleted the instances. */
  async deleted(options: WaitOptions = {}): Promise<void> {
    await withLimits(this.context, `nodes ${this.ids} were not deleted`, options, async (signal) => {
      await Promise.all(this.nodeIds.map((id) => untilAbsent(this.context, nodePath(id), signal)));
    });
  }

  private get nodeIds(): readonly string[] {
    return this.handles.map(({ id }) => id);
  }

  private get ids(): string {
    return this.nodeIds.join(', ');
  }

  private async giveBack(result: JobResult | undefined): Promise<void> {
    const used = usedNode(result);
    await Promise.all(
      this.handles.map(async (handle) => {
        try {
          await handle.release(handle.node.state === 'in-use' ? used : undefined);
        } catch (error) {
          this.context.log.warn('A node could not be marked as used; launchers delete it once its lock is released', {
            node_id: handle.id,
            error,
          });
        }
      }),
    );
  }

  /** Ends the lease for all processes of the owner. A node that another one has returned is not changed. */
  private async giveBackDurably(result: JobResult | undefined): Promise<void> {
    const used = usedNode(result);
    try {
      await Promise.all(
        this.handles.map(async (handle) => {
          try {
            await this.unlock(handle, handle.node.state === 'in-use' ? used : {});
          } catch (error) {
            if (!isLostOwnership(error)) throw error;
            // Another program has changed the record: without its lock, launchers decide about the node.
            await handle.lock.release();
          }
        }),
      );
    } catch (error) {
      this.ending = undefined;
      throw error;
    }
  }

  /** Writes the last change of a durably locked node, and repeats it while ZooKeeper cannot be reached. */
  private async unlock(handle: NodeHandle, change: Partial<NodeData>): Promise<void> {
    const { closing: signal } = this.context;
    for (;;) {
      try {
        await handle.unlock(change, { signal });
        return;
      } catch (error) {
        await pauseAfter(this.context, error, signal);
      }
    }
  }

  /** Repeats `work` while its outcome is unknown. Rejects with `LeaseLostError` if a lock is lost. */
  private async whileHeld(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    for (;;) {
      this.throwIfLost();
      try {
        await work();
        return;
      } catch (error) {
        this.throwIfLost();
        if (isLostOwnership(error) || isZooKeeperError(error, 'no-node')) {
          this.lose(error);
          this.throwIfLost();
        }
        await pauseAfter(this.context, error, signal);
      }
    }
  }

  private throwIfLost(): void {
    this.lost.throwIfAborted();
    if (this.ending !== undefined) throw new LeaseLostError(this.nodeIds, new Error('the nodes were returned'));
  }

  private lose(cause: unknown): void {
    this.ended.abort();
    if (this.ending === undefined) this.lostController.abort(new LeaseLostError(this.nodeIds, cause));
  }
}

function usedNode(result: JobResult | undefined): Partial<NodeData> {
  return { state: 'used', ...(result === undefined ? {} : { job_result: result }) };
}

function isLostOwnership(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'lost-ownership';
}
