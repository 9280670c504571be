/**
 * Deletes the nodes of one provider: in the cloud, then in ZooKeeper. Woken by changes of records; a deletion that the
 * cloud refuses is tried again for ever, with back-off, one by one, holding up no other.
 */

import { setMaxListeners } from 'node:events';
import {
  Slots,
  errorCodeOf,
  linkSignals,
  reasonOf,
  sleep,
  type Call,
  type Node,
  type NodeCleanup,
  type Provider,
  type Timer,
} from '@nodepool/core';
import { LostOwnershipError, type NodeEntry, type NodeHandle } from '@nodepool/store';
import { isToBeDeleted, isUnfinished } from './deletable-nodes.js';
import { type LauncherContext, unixSeconds } from '../context.js';
import { driverCall } from '../driver-call.js';
import { nodeFields } from '../diagnostics/record-fields.js';

/** First and longest wait between attempts, milliseconds; how long one attempt may take. */
const BACK_OFF_MS = { first: 1000, longest: 60_000 } as const;
const ATTEMPT_TIMEOUT_MS = 600_000;
/** Nodes that are being locked at a time: a thousand that come back at once shall not take the memory of a thousand. */
const LOCKING = 32;

interface BlockedNode {
  /** The paths of the foreign znodes. */
  readonly reason: string;
  readonly failures: number;
  /** Undefined while it is tried again. */
  readonly retry: Timer | undefined;
}

export class Deletions {
  private readonly inProgress = new Set<string>();
  private readonly locking = new Slots(LOCKING);
  /** Nodes whose records cannot be removed because of foreign znodes below them. */
  private readonly blocked = new Map<string, BlockedNode>();
  private readonly unsubscribe: (() => void)[];
  /** Aborts when the session is in doubt: the locks may be somebody else's from then on, until it is confirmed again. */
  private doubt = doubtOfSession();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    /** Aborts when the provider is stopped. */
    private readonly signal: AbortSignal,
  ) {
    const { store } = context;
    this.unsubscribe = [
      store.nodes.onChange(({ id, after }) => {
        if (after !== undefined) this.consider(after);
        else this.unblock(id);
      }),
      // What is to be done with a node can depend on the request that it was made for.
      store.requests.onChange(({ id, after }) => {
        if (after?.locked === true) return;
        for (const entry of store.nodes.allocatedTo(id)) this.consider(entry);
      }),
      store.onComplete((complete) => {
        if (complete) this.considerAll();
      }),
    ];
    const onState = (): void => {
      if (store.zooKeeper.state === 'connected') this.doubt = doubtOfSession();
      else this.doubt.abort(new Error('the session is in doubt'));
    };
    store.zooKeeper.on('state', onState);
    this.unsubscribe.push(() => store.zooKeeper.off('state', onState));
    if (store.complete) this.considerAll();
  }

  /** Number of deletions in progress. */
  get size(): number {
    return this.inProgress.size;
  }

  /** Nodes whose deletion is in progress. */
  ids(): readonly string[] {
    return [...this.inProgress];
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    for (const id of [...this.blocked.keys()]) this.unblock(id);
  }

  private considerAll(): void {
    for (const entry of [...this.context.store.nodes.ofProvider(this.provider.config.name)]) this.consider(entry);
  }

  private consider(entry: NodeEntry): void {
    const { store, tasks } = this.context;
    if (entry.node.provider !== this.provider.config.name || this.signal.aborted || !store.complete) return;
    if (this.inProgress.has(entry.id) || this.blocked.get(entry.id)?.retry !== undefined) return;
    if (!isToBeDeleted(entry, store, this.provider.config)) return;
    this.inProgress.add(entry.id);
    tasks.run(
      `delete node ${entry.id}`,
      async () => {
        try {
          await this.delete(entry);
        } catch (error) {
          if (this.signal.aborted) return;
          this.reconsiderLater(entry.id);
          throw error;
        } finally {
          this.inProgress.delete(entry.id);
        }
        // It may have changed while we were at it without getting its lock.
        const now = store.nodes.get(entry.id);
        if (now !== undefined && now.version !== entry.version) this.consider(now);
      },
      { ...nodeFields(store, entry), provider: this.provider.config.name },
    );
  }

  /** After a failure that says nothing about when to try again. */
  private reconsiderLater(nodeId: string): void {
    this.context.clock.schedule(BACK_OFF_MS.longest, () => {
      const entry = this.context.store.nodes.get(nodeId);
      if (entry !== undefined) this.consider(entry);
    });
  }

  private async delete(entry: NodeEntry): Promise<void> {
    const handle = await this.locking.run(this.signal, () => this.take(entry));
    if (handle === undefined) return;
    const log = this.context.log.with({
      ...nodeFields(this.context.store, entry),
      provider: this.provider.config.name,
    });
    log.info('Deleting node', { was: entry.node.state });
    this.decided(entry, 'deletes it', `it was ${entry.node.state}`);
    try {
      if (!(await this.deleteUntilGone(handle))) {
        await this.blockIfForeign(handle);
        return;
      }
      log.info('Deleted node');
      this.provider.nodeDeletedNotification?.(handle.node);
    } catch (error) {
      if (handle.lock.lost.aborted || error instanceof LostOwnershipError) {
        const failure = { code: errorCodeOf(error), reason: reasonOf(error) };
        log.warn('Gave up the deletion: the node is not ours any more', failure);
      } else if (!this.signal.aborted) {
        throw error;
      }
    } finally {
      // Also after another program wrote without the lock: ours would keep every launcher from trying again.
      await handle.lock.release();
    }
  }

  /** Locks the node if it still is to be deleted. */
  private async take(entry: NodeEntry): Promise<NodeHandle | undefined> {
    if (!(await this.isAbandoned(entry))) return undefined;
    return this.context.store.nodes.tryLock(entry.id, {
      from: entry,
      change: { state: 'deleting', progress: deletionProgress(this.context, entry.node) },
    });
  }

  /**
   * A launch that is just being begun looks like an abandoned one for as long as the news of its request is under way.
   * Behind the answer to a read, the caches know what there is to know.
   */
  private async isAbandoned({ id, node }: NodeEntry): Promise<boolean> {
    if (!isUnfinished(node) || node.allocated_to === null) return true;
    const { store } = this.context;
    await store.requests.read(node.allocated_to);
    const now = store.nodes.get(id);
    return now !== undefined && isToBeDeleted(now, store, this.provider.config);
  }

  /** Retries later, with back-off, if foreign znodes below the record keep it from being removed; logs each cause once. */
  private async blockIfForeign({ id, node }: NodeHandle): Promise<void> {
    const { store, clock, log } = this.context;
    const foreign = await store.nodes.foreignBelow(id, { signal: this.signal });
    if (foreign.length === 0) return;
    const before = this.blocked.get(id);
    const reason = foreign.join(', ');
    const failures = before?.reason === reason ? before.failures + 1 : 0;
    const waitMs = Math.min(BACK_OFF_MS.first * 2 ** failures, BACK_OFF_MS.longest);
    if (failures === 0) {
      const message = 'The record of a node cannot be removed: remove the foreign znodes below it';
      log.warn(message, { node_id: id, provider: this.provider.config.name, paths: foreign });
      this.decided({ id, node }, 'cannot remove its record', `there are foreign znodes below it: ${reason}`);
    }
    const retry = clock.schedule(waitMs, () => {
      this.blocked.set(id, { reason, failures, retry: undefined });
      const entry = store.nodes.get(id);
      if (entry === undefined) this.unblock(id);
      else this.consider(entry);
    });
    this.blocked.set(id, { reason, failures, retry });
  }

  private unblock(id: string): void {
    this.blocked.get(id)?.retry?.cancel();
    this.blocked.delete(id);
  }

  /**
   * Returns once the cloud has confirmed that nothing of the node is left: true if its record is removed, false if it is
   * `deleted` and stays.
   */
  private async deleteUntilGone(handle: NodeHandle): Promise<boolean> {
    const link = linkSignals(this.signal, handle.lock.lost);
    try {
      return await this.keepDeleting(handle, link.signal);
    } finally {
      link.unlink();
    }
  }

  private async keepDeleting(handle: NodeHandle, signal: AbortSignal): Promise<boolean> {
    const { clock, log } = this.context;
    const provider = this.provider.config.name;
    for (let failures = 0; ; failures += 1) {
      signal.throwIfAborted();
      try {
        await this.deleteInCloud(handle, signal);
        return await handle.remove();
      } catch (error) {
        if (signal.aborted || error instanceof LostOwnershipError) throw error;
        const waitMs = Math.min(BACK_OFF_MS.first * 2 ** failures, BACK_OFF_MS.longest);
        const fields = { ...nodeFields(this.context.store, handle), provider, seconds: waitMs / 1000, error };
        log.warn('Deleting a node failed; it is tried again', fields);
        this.decided(
          handle,
          'deletion failed; it is tried again',
          error instanceof Error ? error.message : String(error),
        );
        await sleep(clock, waitMs, signal);
        await this.context.store.zooKeeper.connected({ signal });
      }
    }
  }

  private decided({ id, node }: Pick<NodeEntry, 'id' | 'node'>, what: string, reason: string): void {
    this.context.decisions.record('node', id, `${this.provider.config.name}/${node.pool ?? ''}`, what, reason);
  }

  private async deleteInCloud(handle: NodeHandle, signal: AbortSignal): Promise<void> {
    const { clock, store } = this.context;
    const confirmed = linkSignals(signal, this.doubt.signal);
    const log = this.context.log.with({ ...nodeFields(store, handle), provider: this.provider.config.name });
    const call = { signal: confirmed.signal, deadline: clock.monotonic() + ATTEMPT_TIMEOUT_MS, log };
    try {
      await driverCall(clock, `the deletion of node ${handle.id}`, call, async (bounded) => {
        await this.provider.cleanupNode(this.cleanupOf(handle, bounded));
        await this.provider.waitForNodeCleanup(handle.id);
      });
    } finally {
      confirmed.unlink();
    }
  }

  private cleanupOf(handle: NodeHandle, call: Call): NodeCleanup {
    return {
      ...call,
      nodeId: handle.id,
      pool: handle.node.pool,
      externalId: handle.node.external_id,
      installation: this.context.store.installation.id,
      launchAttempt: handle.node.progress?.attempt ?? null,
      saved: handle.node.progress?.machine ?? null,
      save: ({ machine }) => {
        const { progress } = handle.node;
        return progress === null ? Promise.resolve() : handle.update({ progress: { ...progress, machine } });
      },
    };
  }
}

function doubtOfSession(): AbortController {
  const controller = new AbortController();
  // One listener per deletion is no leak.
  setMaxListeners(0, controller.signal);
  return controller;
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
