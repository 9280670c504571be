/** Creates a `Store` over a ZooKeeper client. */

import { isZooKeeperError, lockRecipe, type CallOptions, type ZooKeeper } from '@nodepool/zookeeper';
import { silentLogger, sleep, type Clock, type Logger, type RandomSource, type Timer } from '@nodepool/core';
import type { Store } from './api.js';
import { Caches } from './caches.js';
import { ComponentRegistry } from './component-store.js';
import type { StoreContext } from './context.js';
import { ImageRecords } from './image-store.js';
import { InstallationRecord } from './installation.js';
import { NodeRecords } from './node-store.js';
import { ROOTS } from './paths.js';
import { RequestRecords } from './request-store.js';
import { Suspensions } from './suspensions.js';

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
/** Wait (ms) between checks whether the caches are complete. */
const CHECK_AGAIN_MS = 50;

/** Opens a store, which is idle until started. The store does not own the client: closing the store leaves it open. */
export function openStore(zooKeeper: ZooKeeper, options: StoreOptions): Store {
  return new ZooKeeperStore(zooKeeper, options);
}

class ZooKeeperStore implements Store {
  complete = false;
  readonly nodes: NodeRecords;
  readonly requests: RequestRecords;
  readonly images: ImageRecords;
  readonly components: ComponentRegistry;
  readonly installation: InstallationRecord;
  readonly suspensions: Suspensions;
  private readonly context: StoreContext;
  private readonly closing = new AbortController();
  private retry: Timer | undefined;
  private started = false;
  private readonly readOnly: boolean;

  constructor(
    readonly zooKeeper: ZooKeeper,
    { clock, random, identifier, log = silentLogger, readOnly = false }: StoreOptions,
  ) {
    this.readOnly = readOnly;
    const caches = new Caches(zooKeeper, clock, log);
    // The first listener, so that the others find the new value.
    caches.onComplete((complete) => {
      this.complete = complete;
    });
    const onWarning = (error: Error): void => log.warn('A lock could not be released yet; retrying', { error });
    const locks = lockRecipe(zooKeeper, { random, identifier, clock, onWarning });
    this.context = { zooKeeper, caches, locks, clock, random, log };
    this.components = new ComponentRegistry(this.context);
    this.nodes = new NodeRecords(this.context);
    this.requests = new RequestRecords(this.context, this.nodes);
    this.images = new ImageRecords(this.context);
    this.installation = new InstallationRecord(this.context, {
      onMissing: () => {
        if (!this.closing.signal.aborted && !readOnly) void this.makeRoots();
      },
      onChange: (before, after) => this.suspensions.installationChanged(before, after),
      onUnreadable: (known) => this.suspensions.installationUnreadable(known),
      suspend: (id, call) => this.suspensions.suspend(null, `an operator has set the id ${id}`, call),
    });
    this.suspensions = new Suspensions(this.context, {
      installation: (call) => this.installation.read(call),
      known: () => this.installation.known,
      nodes: this.nodes,
      identifier,
      readOnly,
    });
  }

  start(): void {
    if (this.started) return;
    this.started = true;
    if (!this.readOnly) void this.makeRoots();
    this.suspensions.start();
    this.context.caches.start();
  }

  async ready(options?: CallOptions): Promise<void> {
    const { caches, clock } = this.context;
    await caches.ready(options);
    if (this.readOnly) return;
    await this.installation.ready(options);
    const deadline = clock.monotonic() + (options?.timeoutMs ?? Infinity);
    // The caches are not complete before the state of the server is checked, which needs further answers.
    while (!caches.complete) {
      if (clock.monotonic() >= deadline) throw new Error('the state of ZooKeeper was not checked in time');
      await sleep(clock, CHECK_AGAIN_MS, options?.signal);
      this.closing.signal.throwIfAborted();
      await caches.ready(options);
    }
  }

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
