/** Submitted requests. */

import { sleep, type NodeRequest } from '@nodepool/core';
import { requestCodec, requestLockPath, requestPath, type NodeHandle } from '@nodepool/store';
import { isZooKeeperError, type TransactionOp } from '@nodepool/zookeeper';
import type { LockOptions, RequestProgress, TakeOptions, WaitOptions } from './api.js';
import { RETRY_MS, isTransient, pauseAfter, startLimits, withLimits, type RequestorContext } from './context.js';
import { lockDurably, type LockEffect } from './durable-lock.js';
import { NodeNotReadyError, RequestFailedError, RequestRemovedError } from './errors.js';
import { follow, readRequest } from './follow.js';
import { Lease } from './lease.js';

/**
 * Waits for one request and takes its nodes. All methods continue after the loss of a ZooKeeper session. A durable
 * request survives the loss; any other is removed (`RequestRemovedError`, reason `session-lost`).
 */
export class SubmittedRequest {
  private ended = false;

  /** @internal */
  constructor(
    private readonly context: RequestorContext,
    readonly id: string,
    /**
     * Session whose end deletes the request; 0 for a durable request.
     * @internal
     */
    readonly owner: bigint,
  ) {}

  /**
   * Yields the current state, and again after each change of the state or of the reasons. The last state is `fulfilled`
   * or `failed`. Throws `RequestRemovedError` if the request is removed, and `RequestTimeoutError` at the timeout.
   */
  async *progress(options: WaitOptions = {}): AsyncGenerator<RequestProgress, void, undefined> {
    const { pools } = this.context;
    const { signal, end } = startLimits(this.context, `request ${this.id} was not fulfilled`, options);
    try {
      await pools.ready({ signal, timeoutMs: Infinity });
      let last = '';
      for await (const request of follow(this.context, this, signal, (listener) => pools.onChange(listener))) {
        if (request === undefined) throw this.removed();
        const progress = this.progressOf(request);
        const text = JSON.stringify(progress);
        if (text !== last) yield progress;
        last = text;
        if (request.state === 'fulfilled' || request.state === 'failed') return;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      end();
    }
  }

  /**
   * Resolves with the ids of the nodes once the request is fulfilled. Rejects with `RequestFailedError` if it fails.
   */
  async fulfilled(options: WaitOptions = {}): Promise<readonly string[]> {
    const { nodes } = await withLimits(this.context, `request ${this.id} was not fulfilled`, options, (signal) =>
      this.untilFulfilled(signal),
    );
    return nodes;
  }

  /**
   * Waits until the request is fulfilled, locks its nodes, and removes it. The nodes are not `in-use` yet. Rejects with
   * `NodeNotReadyError` if a node was deleted meanwhile; the other locks are then released and the request remains.
   *
   * A `durable` lease is created in one transaction with the removal of the request. If this owner already holds nodes
   * of the request, from a call or a process that ended before it knew the result, the lease takes over these nodes.
   */
  async lock(options: LockOptions = {}): Promise<Lease> {
    const { durable } = options;
    if (durable !== undefined) return this.lockFor(durable, { change: {}, alongside: [] }, options);
    return await withLimits(this.context, `request ${this.id} was not fulfilled`, options, async (signal) => {
      for (;;) {
        const request = await this.untilFulfilled(signal);
        const handles = await this.lockNodes(request, signal).catch(async (error: unknown) => {
          // Launchers release the nodes of a removed request.
          if ((await readRequest(this.context, this, signal)) === undefined) throw this.removed();
          throw error;
        });
        if (handles !== undefined) {
          this.end();
          return new Lease(this.context, handles, request.node_types);
        }
        await sleep(this.context.clock, RETRY_MS, signal);
      }
    });
  }

  /** Locks the nodes as `lock` does, and marks them `in-use`. */
  async take(options: TakeOptions = {}): Promise<Lease> {
    const { durable, userData, alongside = [] } = options;
    if (durable !== undefined) {
      const change = { state: 'in-use', ...(userData === undefined ? {} : { user_data: userData }) } as const;
      return this.lockFor(durable, { change, alongside }, options);
    }
    const lease = await this.lock(options);
    try {
      await lease.use(options);
      return lease;
    } catch (error) {
      await lease.return();
      throw error;
    }
  }

  /**
   * Changes the priority of a request that no launcher has accepted yet. Resolves with false, changing nothing, if one
   * has. Rejects with `RequestRemovedError` if there is no request.
   */
  async revise(
    { relativePriority }: { readonly relativePriority: number },
    options: WaitOptions = {},
  ): Promise<boolean> {
    return await withLimits(this.context, `request ${this.id} was not revised`, options, async (signal) => {
      for (;;) {
        const read = await readRequest(this.context, this, signal);
        if (read === undefined) throw this.removed();
        const { value } = read.source;
        if (value.state !== 'requested') return false;
        if (value.relative_priority === relativePriority) return true;
        const { data } = requestCodec.change(read.source, { relative_priority: relativePriority });
        const revised = await this.writeLocked(data, read.version, signal);
        if (revised !== undefined) return revised;
      }
    });
  }

  /** Removes the request; launchers release the nodes allocated to it. Does nothing if the request does not exist. */
  async cancel(): Promise<void> {
    this.end();
    // After a backup is restored, another request can have the same id.
    if (await this.isOwn()) await this.context.store.requests.remove(this.id);
  }

  private async lockFor(owner: string, effect: LockEffect, options: WaitOptions): Promise<Lease> {
    return await withLimits(this.context, `request ${this.id} was not fulfilled`, options, async (signal) => {
      const steps = { untilFulfilled: () => this.untilFulfilled(signal), check: this.checkNode.bind(this) };
      const { handles, labels } = await lockDurably(this.context, this.id, steps, owner, effect, signal);
      this.end();
      return new Lease(this.context, handles, labels, owner);
    });
  }

  private async isOwn(): Promise<boolean> {
    for (;;) {
      try {
        const stat = await this.context.zooKeeper.exists(requestPath(this.id));
        return stat?.ephemeralOwner === this.owner;
      } catch (error) {
        if (!isZooKeeperError(error, 'connection-lost')) throw error;
      }
    }
  }

  private async untilFulfilled(signal: AbortSignal): Promise<NodeRequest> {
    for await (const request of follow(this.context, this, signal)) {
      if (request?.state === 'fulfilled') return request;
      if (request?.state === 'failed') {
        const { pools } = this.context;
        await pools.ready({ signal, timeoutMs: Infinity });
        throw new RequestFailedError(this.id, request.declined_by, pools.reasons(request));
      }
    }
    throw this.removed();
  }

  /**
   * Locks all nodes and removes the request. Resolves with undefined and without locks if ZooKeeper failed meanwhile.
   */
  private async lockNodes(request: NodeRequest, signal: AbortSignal): Promise<readonly NodeHandle[] | undefined> {
    const { store } = this.context;
    const attempts = await Promise.allSettled(
      request.nodes.map((id) => store.nodes.lock(id, { signal, watchContender: true })),
    );
    const handles = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []));
    try {
      attempts.forEach((attempt, index) => {
        if (attempt.status === 'rejected') throw this.lockError(request.nodes[index] ?? '', attempt.reason);
      });
      for (const { id, node } of handles) this.checkNode(id, node);
      const held = await this.removeUnderLocks(handles, signal);
      signal.throwIfAborted();
      if (held) return handles;
    } catch (error) {
      for (const { lock } of handles) void lock.release();
      signal.throwIfAborted();
      if (!isTransient(error)) throw error;
      return undefined;
    }
    for (const { lock } of handles) void lock.release();
    return undefined;
  }

  private lockError(nodeId: string, reason: unknown): unknown {
    const missing = reason instanceof Error && 'code' in reason && reason.code === 'lost-ownership';
    return missing ? new NodeNotReadyError(this.id, nodeId, 'does not exist any more') : reason;
  }

  private checkNode(id: string, { state, allocated_to: allocatedTo }: NodeHandle['node']): void {
    if (state === 'ready' && allocatedTo === this.id) return;
    throw new NodeNotReadyError(this.id, id, `is ${state} and allocated to ${allocatedTo ?? 'no request'}`);
  }

  /**
   * Removes the request in a transaction with a check of every lock. Resolves with false, removing nothing, if one is
   * lost.
   */
  private async removeUnderLocks(handles: readonly NodeHandle[], signal: AbortSignal): Promise<boolean> {
    const fences = handles.map(({ lock }) => lock.fence);
    const ops: TransactionOp[] = [...fences, { type: 'delete', path: requestPath(this.id) }];
    for (let unknown = false; ;) {
      if (handles.some(({ lock }) => lock.lost.aborted)) return false;
      try {
        await this.context.zooKeeper.transaction(ops, { signal });
        return true;
      } catch (error) {
        if (isZooKeeperError(error, 'no-node')) {
          if (error.operationIndex !== fences.length) return false;
          // An earlier attempt whose answer was lost has removed it.
          if (unknown) return true;
          throw this.removed();
        }
        unknown ||= isZooKeeperError(error, 'outcome-unknown');
        await pauseAfter(this.context, error, signal);
      }
    }
  }

  /** Resolves with false if a launcher has locked the request, with undefined if the record must be read again. */
  private async writeLocked(data: Uint8Array, version: number, signal: AbortSignal): Promise<boolean | undefined> {
    const { locks } = this.context;
    const op = { type: 'set', path: requestPath(this.id), data, version } as const;
    try {
      const taken = await locks.tryAcquire(requestLockPath(this.id), { ops: [op], signal });
      await taken?.lock.release();
      return taken !== undefined;
    } catch (error) {
      if (!isZooKeeperError(error, 'bad-version') && !isZooKeeperError(error, 'no-node')) {
        await pauseAfter(this.context, error, signal);
      }
      return undefined;
    }
  }

  private progressOf(request: NodeRequest): RequestProgress {
    return {
      id: this.id,
      state: request.state,
      nodes: request.nodes,
      declinedBy: request.declined_by,
      reasons: this.context.pools.reasons(request),
    };
  }

  private end(): void {
    this.ended = true;
    this.context.own.delete(this.id);
  }

  private removed(): RequestRemovedError {
    const { session } = this.context.zooKeeper;
    if (this.ended) return new RequestRemovedError(this.id, 'cancelled');
    return new RequestRemovedError(
      this.id,
      this.owner !== 0n && session?.id !== this.owner ? 'session-lost' : 'removed',
    );
  }
}
