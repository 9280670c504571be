/**
 * Deletes the nodes of one provider, first in the cloud, then in ZooKeeper, in reaction to changes of records. The work
 * queue repeats a deletion that the cloud refuses until it succeeds, under the lock of the first attempt; it does not
 * delay other deletions. The driver repeats failed calls within an attempt.
 */

import type { Call, LogFields, Logger, Node, NodeCleanup, Provider, Reconciled, Retry } from '@nodepool/core';
import { errorCodeOf, linkSignals, reasonOf, Slots, WorkQueue, driverCall } from '@nodepool/core';
import { LostOwnershipError, type NodeEntry, type NodeHandle } from '@nodepool/store';
import { isToBeDeleted, isUnfinished } from './node-lifecycle.js';
import type { RecordComparison } from './record-comparison.js';
import { type LauncherContext, unixSeconds } from '../context.js';
import type { Controller } from '../controller.js';
import { nodeFields } from '../record-fields.js';
import type { Precedence } from '../precedence/precedence.js';
import { StuckDeletions } from './stuck-deletions.js';

/** Time limit of one deletion attempt, in milliseconds. */
const ATTEMPT_TIMEOUT_MS = 600_000;
/** Limit of the nodes being locked at the same time, which bounds the memory when many nodes are returned at once. */
const LOCKING = 32;
/**
 * Delay before a node in use is deleted whose requestor has unlocked it, in milliseconds. The event of the lock arrives
 * before the record that the requestor changed in the same transaction, which starts the deletion at once.
 */
const RETURN_MS = 500;
/** Time after which a deletion by tag is considered again, while it waits for a listing or an operator (ms). */
const COMPARED_MS = 1000;
const SUSPENDED_MS = 30_000;
/** Time after which a deletion that is left to another launcher is considered again (ms). */
const LEFT_MS = 5000;

/** The record of a node cannot be deleted because of foreign znodes below it. */
class ForeignZnodesError extends Error {
  constructor(readonly paths: readonly string[]) {
    super(`there are foreign znodes below it: ${paths.join(', ')}`);
    this.name = 'ForeignZnodesError';
  }
}

class LeftToOthersError extends Error {
  constructor() {
    super('this launcher cannot use the provider, and another one can');
    this.name = 'LeftToOthersError';
  }
}

export class Deletions implements Controller {
  /** Pending deletions, by node id. */
  private readonly queue: WorkQueue<string>;
  private readonly locking = new Slots(LOCKING);
  /** Nodes whose lock is held by a deletion that runs or waits for its next attempt, by node id. */
  private readonly held = new Map<string, NodeHandle>();
  /** Messages of the reported causes that block the deletion of records, by node id. */
  private readonly blocked = new Map<string, string>();
  private readonly unsubscribe: (() => void)[];
  private readonly log: Logger;
  private readonly stuck: StuckDeletions;
  /** Aborts when the connection is suspended. Until it is confirmed again, other programs may hold the locks. */
  private suspension = new AbortController();
  /** Aborts when the deletions are left to another launcher. */
  private leaving = new AbortController();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    private readonly comparison: RecordComparison,
    private readonly precedence: Pick<Precedence, 'waitForDeletion' | 'deletionLost' | 'taken' | 'forget'>,
    /** Stops counting a node against the limits. Returns false if it must count. */
    stopCounting: (nodeId: string) => boolean,
    /** Returns true while this launcher cannot use the provider and another one can. */
    private readonly isLeft: () => boolean,
    /** Aborts when the provider is stopped. */
    private readonly signal: AbortSignal,
  ) {
    const { store } = context;
    this.log = context.log.with({ provider: provider.config.name });
    this.stuck = new StuckDeletions(context.clock, this.log, (id, reason) => {
      if (provider.config.countsUnendedDeletions !== false || !stopCounting(id)) return;
      this.decided(id, 'deletion waits', `${reason}; the node no longer counts against the limits`);
    });
    this.queue = new WorkQueue({
      ...context,
      name: (id) => `delete node ${id}`,
      about: (id) => this.about(id),
      reconcile: (id) => this.reconcile(id),
      onFailure: (id, error, retry) => this.failed(id, error, retry),
    });
    this.unsubscribe = [
      store.nodes.onChange(({ id, after }) => {
        if (after === undefined) this.forget(id);
        // Its owner decides about a locked node.
        else if (after.locked) this.lockedBy(id);
        else this.consider(after);
      }),
      // The state of a node's request can decide between deleting and resuming the node.
      store.requests.onChange(({ id, after }) => {
        if (after?.locked !== true) store.nodes.allocatedTo(id).forEach(this.consider);
      }),
      store.onComplete((complete) => {
        if (complete) this.considerAll();
      }),
    ];
    const onState = (): void => {
      if (store.zooKeeper.state === 'connected') {
        this.suspension = new AbortController();
        // Deletions whose lock was lost with the former session are abandoned before their next attempt.
        for (const { id, lock } of this.held.values()) if (!lock.held) this.queue.forgetFailures(id);
      } else this.suspension.abort(new Error('the connection to ZooKeeper is suspended'));
    };
    store.zooKeeper.on('state', onState);
    this.unsubscribe.push(() => store.zooKeeper.off('state', onState));
    if (store.complete) this.considerAll();
  }

  /** Returns the ids of the nodes whose deletion is in progress. */
  ids(): readonly string[] {
    return [...new Set([...this.held.keys(), ...this.queue.runningKeys])];
  }

  /** Returns true while this launcher deletes the node. */
  isDeleting(id: string): boolean {
    return this.held.has(id) || this.queue.isRunning(id);
  }

  /** Leaves all deletions to another launcher if this one cannot use the provider any more. */
  healthChanged(): void {
    if (!this.isLeft()) return;
    this.leaving.abort(new LeftToOthersError());
    this.leaving = new AbortController();
    // A deletion in progress releases its lock itself.
    for (const handle of this.held.values()) if (!this.queue.isRunning(handle.id)) void this.release(handle);
  }

  /** Retries failed deletions at once, because the cloud can be used again. */
  recovered(): void {
    for (const id of this.held.keys()) this.queue.forgetFailures(id);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
    this.stuck.stop();
    // A deletion in progress releases its lock itself.
    for (const handle of this.held.values()) if (!this.queue.isRunning(handle.id)) void this.release(handle);
  }

  private considerAll(): void {
    for (const entry of this.context.store.nodes.ofProvider(this.provider.config.name)) this.consider(entry);
  }

  private readonly consider = (entry: NodeEntry): void => {
    if (!this.isDue(entry)) return;
    const waitMs = this.precedence.waitForDeletion(entry);
    this.queue.add(entry.id, Math.max(waitMs, entry.node.state === 'in-use' ? RETURN_MS : 0));
  };

  private forget(id: string): void {
    this.precedence.forget(id);
    this.blocked.delete(id);
    if (!this.held.has(id)) this.queue.remove(id);
  }

  /** Handles the lock of a node, which another launcher may have acquired to delete it. */
  private lockedBy(id: string): void {
    if (this.isDeleting(id) || !this.queue.has(id)) return;
    this.precedence.taken(id);
    this.queue.remove(id);
  }

  private isDue(entry: NodeEntry): boolean {
    const { store } = this.context;
    const { config } = this.provider;
    if (entry.node.provider !== config.name || !isToBeDeleted(entry, store, config)) return false;
    return store.complete && !this.signal.aborted;
  }

  private async reconcile(id: string): Promise<Reconciled> {
    if (!this.held.has(id)) {
      const entry = this.dueEntry(id);
      if (entry === undefined) return 'done';
      if (this.isLeft()) {
        this.decided(id, 'deletion waits', 'it is left to another launcher, because this one cannot use the provider');
        return { requeueAfterMs: LEFT_MS };
      }
      const waitMs = this.precedence.waitForDeletion(entry) || (await this.waitOf(entry));
      if (waitMs > 0) return { requeueAfterMs: waitMs };
    }
    const handle = this.held.get(id) ?? (await this.locking.run(this.signal, () => this.take(id)));
    if (handle !== undefined) await this.delete(handle);
    return 'done';
  }

  /**
   * Resolves with the milliseconds until the next check of a node whose instance would be found by its tags; 0 if it
   * may be deleted. In an older state of ZooKeeper, the launch of a node in use is unfinished.
   */
  private async waitOf({ id, node }: NodeEntry): Promise<number> {
    if (node.external_id !== null || (node.progress?.attempt ?? '') === '') return 0;
    if (this.comparison.isOpenFor(id)) {
      this.decided(id, 'deletion waits', 'the records were not compared with the cloud since the start');
      return COMPARED_MS;
    }
    const { suspensions } = this.context.store;
    const suspension = await suspensions.check(this.provider.config.name, { signal: this.signal });
    if (suspension === undefined || (suspension.nextNode !== null && id >= suspension.nextNode)) return 0;
    this.decided(id, 'deletion waits', `deletions by tag are suspended: ${suspension.reason}`);
    return SUSPENDED_MS;
  }

  /** Returns the record of a node that is to be deleted; otherwise undefined. */
  private dueEntry(id: string): NodeEntry | undefined {
    const entry = this.context.store.nodes.get(id);
    return entry !== undefined && this.isDue(entry) ? entry : undefined;
  }

  /** Reports a failed attempt, and each cause that blocks a record once. */
  private failed(id: string, error: unknown, retry: Retry | undefined): void {
    const handle = this.held.get(id);
    if (this.signal.aborted) {
      if (handle !== undefined) void this.release(handle);
      return;
    }
    const { log } = this.context;
    if (handle !== undefined) {
      log.warn('Deleting a node failed; retrying', { ...this.about(id), seconds: retry && retry.waitMs / 1000, error });
      this.failedAttempt(id, error);
      return;
    }
    const fields = { ...this.about(id), failures: retry?.failures, seconds: retry && retry.waitMs / 1000 };
    if (!(error instanceof ForeignZnodesError)) {
      log.error('The deletion of a node failed; retrying', error, fields);
      return;
    }
    if (this.blocked.get(id) === error.message) return;
    this.blocked.set(id, error.message);
    const message = 'The record of a node cannot be removed: remove the foreign znodes below it';
    log.warn(message, { ...this.about(id), paths: error.paths });
    this.decided(id, 'cannot remove its record', error.message);
  }

  private about(id: string): LogFields {
    const { store } = this.context;
    const entry = store.nodes.get(id);
    return {
      ...(entry === undefined ? { node_id: id } : nodeFields(store, entry)),
      provider: this.provider.config.name,
    };
  }

  /**
   * Deletes a locked node in the cloud, then its record. After a failure, the lock is held until the next attempt, so
   * that no other launcher deletes the node meanwhile.
   */
  private async delete(handle: NodeHandle): Promise<void> {
    const { id, lock } = handle;
    const log = this.logOf(handle);
    let isGone: boolean;
    try {
      await this.confirmed(lock);
      await this.deleteInCloud(handle, log);
      isGone = await handle.remove();
    } catch (error) {
      const isLost = !lock.held || error instanceof LostOwnershipError;
      const isLeft = this.isLeft();
      if (!isLost && !isLeft && !this.signal.aborted) throw error;
      // The lock is released even if another program wrote the record without it: otherwise no launcher could retry.
      await this.release(handle);
      if (isLeft) log.info(`Left the deletion to another launcher: ${reasonOf(error)}`);
      if (!isLost) return;
      const failure = { code: errorCodeOf(error), reason: reasonOf(error) };
      log.warn('Abandoned the deletion: another program owns the node now', failure);
      return;
    }
    await this.release(handle);
    if (isGone) {
      log.info('Deleted node');
      this.provider.nodeDeletedNotification?.(handle.node);
      return;
    }
    const paths = await this.context.store.nodes.foreignBelow(id, { signal: this.signal });
    if (paths.length > 0) throw new ForeignZnodesError(paths);
  }

  private async release({ id, lock }: NodeHandle): Promise<void> {
    this.held.delete(id);
    this.stuck.end(id);
    await lock.release();
  }

  /** Resolves once the connection is confirmed. Rejects if the provider is stopped or the lock is lost. */
  private async confirmed(lock: NodeHandle['lock']): Promise<void> {
    const { zooKeeper } = this.context.store;
    if (lock.held && zooKeeper.state === 'connected') return;
    const link = linkSignals(this.signal, lock.lost);
    try {
      await zooKeeper.connected({ signal: link.signal });
    } finally {
      link.unlink();
    }
  }

  /** Locks the node and marks it as `deleting` if it is still to be deleted. */
  private async take(id: string): Promise<NodeHandle | undefined> {
    // The record may have changed while other nodes were being locked.
    const entry = this.dueEntry(id);
    if (entry === undefined || (isUnfinished(entry.node) && !(await this.isAbandoned(entry)))) return undefined;
    const handle = await this.context.store.nodes.tryLock(id, {
      from: entry,
      change: { state: 'deleting', progress: deletionProgress(this.context, entry.node) },
    });
    if (handle === undefined) {
      this.precedence.deletionLost(entry);
      return undefined;
    }
    this.held.set(id, handle);
    const { state, state_time: since } = entry.node;
    this.stuck.begin(id, state === 'deleting' ? Math.max(this.context.clock.now() - since * 1000, 0) : 0);
    this.logOf(handle).info('Deleting node', { was: entry.node.state });
    this.decided(id, 'deletes it', `it was ${entry.node.state}`);
    return handle;
  }

  /**
   * Returns true if the node is still to be deleted. A launch that has just started looks abandoned until the change of
   * its request arrives; once a read of the request is answered, the caches have all earlier changes.
   */
  private async isAbandoned({ id, node }: NodeEntry): Promise<boolean> {
    if (node.allocated_to === null) return true;
    await this.context.store.requests.read(node.allocated_to);
    return this.dueEntry(id) !== undefined;
  }

  private logOf(handle: NodeHandle): Logger {
    return this.log.with(nodeFields(this.context.store, handle));
  }

  /** Shows the latest answer of the cloud in the explanation of the node. */
  private failedAttempt(id: string, error: unknown): void {
    this.stuck.answered(id, reasonOf(error), false);
    this.decided(id, 'deletion failed; retrying', reasonOf(error));
  }

  private decided(id: string, what: string, reason: string): void {
    const pool = this.context.store.nodes.get(id)?.node.pool ?? '';
    this.context.decisions.record('node', id, `${this.provider.config.name}/${pool}`, what, reason);
  }

  /**
   * Calls the driver until the provider is stopped or the connection is suspended. A lock is lost only with its
   * session, which suspends the connection too.
   */
  private deleteInCloud(handle: NodeHandle, log: Logger): Promise<void> {
    const { clock } = this.context;
    const call = { signal: this.signal, deadline: clock.monotonic() + ATTEMPT_TIMEOUT_MS, log };
    const work = async (bounded: Call): Promise<void> => {
      await this.provider.cleanupNode(this.cleanupOf(handle, bounded));
      await this.provider.waitForNodeCleanup(handle.id);
    };
    return driverCall(clock, `the deletion of node ${handle.id}`, call, work, [
      this.suspension.signal,
      this.leaving.signal,
    ]);
  }

  private cleanupOf(handle: NodeHandle, { signal, deadline, log }: Call): NodeCleanup {
    const { pool, external_id: externalId, progress } = handle.node;
    return {
      signal,
      deadline,
      log,
      nodeId: handle.id,
      pool,
      externalId,
      installation: this.context.store.installation.id,
      launchAttempt: progress?.attempt ?? null,
      onFailedAttempt: (error) => {
        this.failedAttempt(handle.id, error);
        this.healthChanged();
      },
      onWaiting: (reason) => {
        this.decided(handle.id, 'deletion waits', reason);
        this.stuck.answered(handle.id, reason, true);
      },
      saved: progress?.machine ?? null,
      save: ({ machine }) => {
        const { progress: recorded } = handle.node;
        return recorded === null ? Promise.resolve() : handle.update({ progress: { ...recorded, machine } });
      },
    };
  }
}

function deletionProgress(context: LauncherContext, node: Node): Node['progress'] {
  const machine = node.progress?.kind === 'deletion' ? node.progress.machine : null;
  return {
    kind: 'deletion',
    attempt: node.progress?.attempt ?? '',
    number: 1,
    started: unixSeconds(context),
    machine,
  };
}
