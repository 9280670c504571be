/**
 * A copy of a collection that a watch keeps current: one list, then events. A watch that ends continues at its last
 * version; a version that the server has forgotten (410) leads to a new list.
 */

import type { Call, Clock, Logger, RandomSource } from '@nodepool/core';
import {
  AbortedError,
  backOffMs,
  DriverError,
  Latch,
  sleep,
  toDriverError,
  untilAborted,
  withDeadline,
  TimeoutError,
  TimerQueue,
} from '@nodepool/core';
import { ExpiredError, watchErrorOf } from '../errors.js';
import type { Client, Selection, WatchEvent } from './client.js';
import { objectOf, type Collection, type KubernetesObject } from './objects.js';

/** Silence of the server (ms) after which the copy is read again before use. A bookmark comes about once a minute. */
const SILENCE_MS = 150_000;
/** Versions that expire sooner after each other lead to a delay before the next list (ms). */
const FREQUENT_EXPIRY_MS = 120_000;
/** A watch that ends sooner counts as a failure (ms). */
const SHORT_WATCH_MS = 1000;

export interface ObjectCacheOptions {
  readonly client: Client;
  readonly collection: Collection;
  readonly selection?: Selection;
  /** False if watches of the collection cannot continue at a version; the list is read again after each watch. */
  readonly canResume?: boolean;
  /** True to begin with a watch, whose first events are the present objects. It suits single objects. */
  readonly withoutList?: boolean;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

export class ObjectCache {
  private readonly objects = new Map<string, KubernetesObject>();
  private readonly stopped = new AbortController();
  private readonly timers: TimerQueue;
  /** Open while the copy is current. */
  private readonly synced = new Latch(false);
  private version: string | undefined;
  private lastEventAt = -Infinity;
  private failure: DriverError | undefined;
  private failures = 0;
  /** Number of expired versions in close succession after the first one, and the time of the last. */
  private expiries = 0;
  private expiredAt = -Infinity;
  private watching: AbortController | undefined;
  private running: Promise<void> | undefined;
  /** Readers that wait until the copy is current, or for the failure that prevents it. */
  private readonly waiters = new Set<AbortController>();

  constructor(private readonly options: ObjectCacheOptions) {
    this.timers = new TimerQueue(options.clock);
  }

  /** True if the copy shows the cluster as of the last moments. */
  get isCurrent(): boolean {
    return this.synced.isOpen && this.options.clock.monotonic() - this.lastEventAt < SILENCE_MS;
  }

  /** Reads the list once and then keeps it current. Rejects if the list cannot be read. */
  async start(call: Call): Promise<void> {
    if (this.running !== undefined) return;
    await this.read(call);
    this.running = this.run();
  }

  /** Keeps the copy current without waiting for the first list. */
  startSoon(): void {
    this.running ??= this.run();
  }

  /** Resolves when all work has ended. Idempotent. */
  async stop(): Promise<void> {
    this.stopped.abort(new AbortedError('the provider was stopped'));
    await this.running;
  }

  get(name: string, namespace?: string): KubernetesObject | undefined {
    return this.objects.get(keyOf(name, namespace));
  }

  /** Resolves with all objects as of now or of the last moments. Rejects with the error that prevents this. */
  async current(call: Call): Promise<readonly KubernetesObject[]> {
    if (!this.isCurrent) await this.refreshed(call);
    return [...this.objects.values()];
  }

  private async refreshed({ signal, deadline }: Call): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    if (this.synced.isOpen) {
      this.synced.close();
      this.version = undefined;
      this.watching?.abort(new AbortedError('the server was silent'));
    }
    const { kind } = this.options.collection;
    const onDeadline = (): TimeoutError => new TimeoutError(`the list of ${kind.name} was not read in time`);
    const failed = new AbortController();
    this.waiters.add(failed);
    try {
      await withDeadline({ timers: this.timers, signal, deadline, onDeadline }, (limited) =>
        untilAborted(untilAborted(this.synced.wait(), failed.signal), limited),
      );
    } finally {
      this.waiters.delete(failed);
    }
  }

  private async run(): Promise<void> {
    const { signal } = this.stopped;
    const { clock, random } = this.options;
    while (!this.hasStopped()) {
      try {
        if (this.version === undefined) await this.begin();
        await this.follow();
      } catch (error) {
        if (this.hasStopped()) return;
        const failure = toDriverError(error);
        if (failure instanceof ExpiredError) {
          this.options.log.info('A watch is read again, because its version is too old', { error: failure });
          this.version = undefined;
          this.synced.close();
          await this.delayAfterExpiry();
          continue;
        }
        if (failure.code === 'aborted') continue;
        this.fail(failure);
        await sleep(clock, backOffMs(this.failures, failure, random), signal).catch(() => undefined);
      }
    }
  }

  /** Delays the next list if the server refuses one version after the other. */
  private async delayAfterExpiry(): Promise<void> {
    const { clock, random } = this.options;
    const now = clock.monotonic();
    this.expiries = now - this.expiredAt < FREQUENT_EXPIRY_MS ? this.expiries + 1 : 0;
    this.expiredAt = now;
    if (this.expiries === 0) return;
    await sleep(clock, backOffMs(this.expiries, undefined, random), this.stopped.signal).catch(() => undefined);
  }

  private hasStopped(): boolean {
    return this.stopped.signal.aborted;
  }

  /** Reads the list, or lets the watch begin with the present objects. */
  private async begin(): Promise<void> {
    if (this.options.withoutList === true) this.objects.clear();
    else await this.read(this.call());
  }

  /** Returns a call without a deadline, because the client limits the time of each page. */
  private call(): Call {
    return { signal: this.stopped.signal, deadline: Infinity, log: this.options.log };
  }

  private async read(call: Call): Promise<void> {
    const { client, collection, selection = {} } = this.options;
    const { items, resourceVersion } = await client.list(collection, selection, call);
    this.objects.clear();
    for (const item of items) this.objects.set(keyOf(item.name, item.namespace), item);
    this.version = resourceVersion;
    this.succeed();
  }

  private async follow(): Promise<void> {
    const { client, collection, selection = {}, canResume = true, clock, log } = this.options;
    const watching = new AbortController();
    const { signal } = this.stopped;
    const abort = (): void => watching.abort(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.watching = watching;
    const startedAt = clock.monotonic();
    try {
      const version = this.version === undefined ? {} : { resourceVersion: this.version };
      const watcher = { onOpen: () => this.succeed(), onEvent: (event: WatchEvent) => this.apply(event) };
      await client.watch(collection, { ...selection, ...version }, watcher, {
        signal: watching.signal,
        deadline: Infinity,
        log,
      });
    } finally {
      this.watching = undefined;
      signal.removeEventListener('abort', abort);
      if (!canResume) {
        this.version = undefined;
        this.synced.close();
      }
    }
    if (clock.monotonic() - startedAt < SHORT_WATCH_MS) {
      throw new DriverError('transient', `the server ended the watch of ${collection.kind.name} at once`);
    }
  }

  private apply({ type, object }: WatchEvent): false {
    if (type === 'ERROR') {
      throw watchErrorOf(`watch ${this.options.collection.kind.name}`, object, this.options.clock.now());
    }
    const changed = objectOf(object);
    const key = keyOf(changed.name, changed.namespace);
    if (type === 'DELETED') this.objects.delete(key);
    else if (type === 'ADDED' || type === 'MODIFIED') this.objects.set(key, changed);
    if (changed.resourceVersion !== '') this.version = changed.resourceVersion;
    this.succeed();
    return false;
  }

  private succeed(): void {
    if (this.failures > 0) this.options.log.info('The cluster is watched again', this.fields());
    this.failures = 0;
    this.failure = undefined;
    this.lastEventAt = this.options.clock.monotonic();
    this.synced.open();
  }

  private fail(failure: DriverError): void {
    this.failures += 1;
    this.failure = failure;
    this.synced.close();
    for (const waiter of this.waiters) waiter.abort(failure);
    this.waiters.clear();
    if (this.failures === 1)
      this.options.log.warn('The cluster cannot be watched', { ...this.fields(), error: failure });
  }

  private fields(): { readonly kind: string; readonly namespace?: string } {
    const { kind, namespace } = this.options.collection;
    return { kind: kind.name, ...(namespace === undefined ? {} : { namespace }) };
  }
}

function keyOf(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
