/**
 * The domain's records in ZooKeeper: nodes, requests, images, components. Reads are served from tree caches, which lag
 * behind the server; every decision is confirmed by a versioned write or a fenced transaction.
 *
 * Errors: a write rejects with `LostOwnershipError` if its version or lock is no longer valid: re-read, and stop. An
 * existing record that cannot be parsed rejects with `CorruptRecordError`, and a transaction over the server's size
 * limit with `TransactionTooLargeError`. Every other error is the ZooKeeper client's.
 *
 * A creation or a lock acquisition rejects with `OutcomeUnknownError` if its answer was lost: no lock is held, and
 * records that were created or changed anyway show in the caches. Writes under a lock determine their outcome
 * themselves.
 */

import { isZooKeeperError, lockRecipe, type CallOptions, type ZooKeeper } from '@nodepool/zookeeper';
import { type Clock, type Timer, silentLogger, type Logger, type RandomSource } from '@nodepool/core';
import { Caches } from './tables/caches.js';
import { ComponentStore } from './components/component-store.js';
import type { StoreContext } from './context.js';
import { DemandStore } from './demand/demand-store.js';
import { ImageStore } from './images/image-store.js';
import { InstallationStore } from './installation/installation-store.js';
import { NodeStore } from './nodes/node-store.js';
import { NODES_ROOT, REQUESTS_ROOT, ROOTS } from './paths.js';
import { RequestStore } from './requests/request-store.js';
import { SuspensionStore } from './installation/suspension-store.js';

export interface StoreOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Written into this process's locks for operators, e.g. `<host>-<pid>`. */
  readonly identifier: string;
  /** Default: no log. */
  readonly log?: Logger;
  /** True for a store that creates neither root znodes nor the id of the installation when it starts. Default false. */
  readonly readOnly?: boolean;
}

/** Wait (ms) after an error that does not say when to retry. */
const RETRY_MS = 1000;

/** Opens a store, which is idle until started. The store does not own the client: closing the store leaves it open. */
export function openStore(zooKeeper: ZooKeeper, options: StoreOptions): Store {
  return new Store(zooKeeper, options);
}

/** All records of one ensemble. */
export class Store {
  readonly nodes: NodeStore;
  readonly requests: RequestStore;
  readonly images: ImageStore;
  readonly components: ComponentStore;
  readonly installation: InstallationStore;
  readonly suspensions: SuspensionStore;
  readonly demand: DemandStore;
  private readonly context: StoreContext;
  private readonly closing = new AbortController();
  private retry: Timer | undefined;
  private started = false;
  private isComplete = false;
  private readonly readOnly: boolean;

  constructor(
    readonly zooKeeper: ZooKeeper,
    { clock, random, identifier, log = silentLogger, readOnly = false }: StoreOptions,
  ) {
    this.readOnly = readOnly;
    const caches = new Caches(zooKeeper, clock, log);
    // The first listener, so that the others find the new value.
    caches.onComplete((complete) => {
      this.isComplete = complete;
    });
    const onWarning = (error: Error): void => log.warn('A lock could not be released yet; retrying', { error });
    const locks = lockRecipe(zooKeeper, { random, identifier, clock, onWarning });
    this.context = { zooKeeper, caches, locks, clock, random, log };
    this.components = new ComponentStore(this.context);
    this.nodes = new NodeStore(this.context);
    this.requests = new RequestStore(this.context, this.nodes);
    this.images = new ImageStore(this.context);
    this.demand = new DemandStore(this.context);
    this.installation = new InstallationStore(this.context, {
      onMissing: () => {
        if (!this.closing.signal.aborted && !readOnly) void this.makeRoots();
      },
      onChange: (before, after) => this.suspensions.installationChanged(before, after),
      onUnreadable: (known) => this.suspensions.installationUnreadable(known),
      suspend: (id, call) => this.suspensions.suspend(null, `an operator has set the id ${id}`, call),
    });
    this.suspensions = new SuspensionStore(this.context, {
      installation: (call) => this.installation.read(call),
      known: () => this.installation.known,
      nodes: this.nodes,
      identifier,
      readOnly,
    });
  }

  /** True while every cache mirrors the server. */
  get complete(): boolean {
    return this.isComplete;
  }

  /** Creates missing root znodes and starts the caches. */
  start(): void {
    if (this.started) return;
    this.started = true;
    if (!this.readOnly) void this.makeRoots();
    this.suspensions.start();
    this.context.caches.start();
  }

  /** Resolves once `complete`. */
  async ready(options?: CallOptions): Promise<void> {
    const { caches } = this.context;
    await caches.ready(options);
    if (this.readOnly) return;
    await this.installation.ready(options);
    // The caches are not complete before the state of the server is checked, which needs further answers.
    await caches.completed(options);
  }

  /** Resolves once the caches have all changes of nodes and requests that any program made before the call. */
  async caughtUp(options?: CallOptions): Promise<void> {
    await this.zooKeeper.sync(NODES_ROOT, options);
    await this.context.caches.caughtUp([NODES_ROOT, REQUESTS_ROOT], options);
  }

  /** Calls `listener` on every change of `complete`. Returns a function that removes the listener. */
  onComplete(listener: (complete: boolean) => void): () => void {
    return this.context.caches.onComplete(listener);
  }

  close(): void {
    this.closing.abort(new Error('the store is closed'));
    this.retry?.cancel();
    this.suspensions.close();
    this.context.caches.close();
  }

  /** Never rejects: retries until it succeeds or the store is closed. */
  private async makeRoots(): Promise<void> {
    const { signal } = this.closing;
    try {
      // Pipelined: the server creates the parents first.
      await Promise.all([...ROOTS.map((path) => this.makeRoot(path)), this.installation.ensure({ signal })]);
    } catch (error) {
      if (signal.aborted || this.zooKeeper.state === 'closed') return;
      this.context.log.warn('The root znodes could not be created; retrying', { error });
      this.retry = this.context.clock.schedule(RETRY_MS, () => void this.makeRoots());
    }
  }

  private async makeRoot(path: string): Promise<void> {
    try {
      await this.zooKeeper.create(path, undefined, { signal: this.closing.signal });
    } catch (error) {
      if (!isZooKeeperError(error, 'node-exists')) throw error;
    }
  }
}
