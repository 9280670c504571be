/**
 * Delayed work queue for controllers, modelled on the work queues of Kubernetes: each key is pending at most once, at
 * its earliest requested time, and is never reconciled concurrently.
 */

import { setMaxListeners } from 'node:events';
import type { LogFields, Logger } from './logger.js';
import { backOffMs, type BackOffLimits } from './back-off.js';
import type { Clock, Timer } from './clock.js';
import { Latch } from './latch.js';
import type { RandomSource } from './random.js';
import { TaskOrigin, type TaskHandle, type TaskSupervisor } from './tasks.js';
import { TimerQueue } from './timer-queue.js';

/**
 * Result of a reconciliation. `requeueAfterMs` adds the key again, as `add` does. `pauseMs` adds it again too, but
 * additions in the meantime do not shorten the wait, so that events caused by the reconciliation itself have no effect.
 */
export type Reconciled = 'done' | { readonly requeueAfterMs: number } | { readonly pauseMs: number };

/** One run of `reconcile`. */
export interface Reconciliation {
  /** Aborts when the queue is aborted. */
  readonly signal: AbortSignal;
  readonly task: TaskHandle;
}

/** The retry that follows a failure. */
export interface Retry {
  /** Number of consecutive failures, including this one. */
  readonly failures: number;
  readonly waitMs: number;
}

/** A key that is due, with its due time (`Clock.monotonic` milliseconds). */
export interface DueKey<K> {
  readonly key: K;
  readonly since: number;
}

/** Choice of a `select` function. */
export interface Selection<K> {
  /** Key to start; undefined to start none now. */
  readonly next: K | undefined;
  /** Time in milliseconds after which `select` is called again, even without an event. */
  readonly againMs?: number | undefined;
}

/** Chooses among the due keys, given the running ones. Called until it chooses none. */
export type Select<K> = (due: readonly DueKey<K>[], running: ReadonlySet<K>) => Selection<K>;

export interface WorkQueueOptions<K> {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly tasks: TaskSupervisor;
  readonly log: Logger;
  /** Name of a reconciliation in the stack dump and in logs, e.g. `delete node 0000000001`. */
  readonly name: (key: K) => string;
  /** Log fields of a key. */
  readonly about?: (key: K) => LogFields;
  /**
   * Brings reality in line with the desired state of the key, based on the current state alone. If the key came too
   * early, the result says when to reconcile it again. A rejection is retried.
   */
  readonly reconcile: (key: K, run: Reconciliation) => Promise<Reconciled>;
  readonly backOff?: BackOffLimits;
  /** Maximum number of keys reconciled at the same time, longest due first. Default: no limit. */
  readonly concurrency?: number;
  /** Replaces `concurrency` if the keys need another order. */
  readonly select?: Select<K>;
  /** Reports a failure, without `retry` if the queue was aborted. Default: logs a warning. */
  readonly onFailure?: (key: K, error: unknown, retry: Retry | undefined) => void;
}

/** Activity of a queue, for the stack dump and for metrics. */
export interface WorkQueueActivity<K> {
  readonly running: readonly { readonly key: K; readonly ageMs: number }[];
  /** Due keys that wait for running keys to end. */
  readonly due: readonly K[];
  /** Number of keys that wait for their requested time. */
  readonly delayed: number;
  readonly retries: readonly { readonly key: K; readonly failures: number; readonly waitMs: number }[];
}

/** A key that is pending, running, or both. */
interface Entry<K> {
  readonly key: K;
  /** Earliest requested time; `Infinity` if nothing is requested. */
  at: number;
  /** End of the wait after a failure or a pause. */
  notBefore: number;
  failures: number;
  timer: Timer | undefined;
  /** Start of the reconciliation in progress. */
  startedAt: number | undefined;
}

export class WorkQueue<K> {
  private readonly entries = new Map<K, Entry<K>>();
  /** Due keys with their due times, in the order of these times. */
  private readonly due = new Map<K, number>();
  private readonly running = new Set<K>();
  private readonly timers: TimerQueue;
  private readonly stopping = new AbortController();
  private readonly idleness = new Latch(true);
  private readonly origin = new TaskOrigin();
  private again: Timer | undefined;
  private turn: Timer | undefined;
  private closed = false;

  constructor(private readonly options: WorkQueueOptions<K>) {
    this.timers = new TimerQueue(options.clock, { background: true });
    setMaxListeners(0, this.stopping.signal);
  }

  /**
   * Reconciles the key after `delayMs`, or earlier if already requested, but not during a reconciliation in progress
   * and not before the retry of a failure. Starts in the clock's next turn at the earliest, so that a key added by
   * several simultaneous events is reconciled once.
   */
  add(key: K, delayMs = 0): void {
    if (this.closed) return;
    let entry = this.entries.get(key);
    if (entry === undefined) {
      entry = { key, at: Infinity, notBefore: -Infinity, failures: 0, timer: undefined, startedAt: undefined };
      this.entries.set(key, entry);
    }
    const now = this.options.clock.monotonic();
    this.request(entry, now + Math.max(0, delayMs), now);
  }

  /** Cancels the pending requests of the key and resets its failures. A reconciliation in progress continues. */
  remove(key: K): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.withdraw(entry);
    entry.notBefore = -Infinity;
    entry.failures = 0;
    if (entry.startedAt === undefined) this.entries.delete(key);
    this.openIfIdle();
  }

  /** Ends the wait after a failure or a pause, for use when the next attempt is likely to succeed. */
  forgetFailures(key: K): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    entry.failures = 0;
    entry.notBefore = -Infinity;
    if (entry.startedAt === undefined) this.arm(entry, this.options.clock.monotonic());
  }

  /** Number of keys that are pending or running. */
  get size(): number {
    return this.entries.size;
  }

  /** Returns true if the key is pending or running. */
  has(key: K): boolean {
    return this.entries.has(key);
  }

  isRunning(key: K): boolean {
    return this.running.has(key);
  }

  get runningKeys(): ReadonlySet<K> {
    return this.running;
  }

  activity(): WorkQueueActivity<K> {
    const now = this.options.clock.monotonic();
    const entries = [...this.entries.values()];
    return {
      running: entries.flatMap(({ key, startedAt }) =>
        startedAt === undefined ? [] : [{ key, ageMs: now - startedAt }],
      ),
      due: [...this.due.keys()],
      delayed: entries.filter(({ key, startedAt }) => startedAt === undefined && !this.due.has(key)).length,
      retries: entries
        .filter(({ failures }) => failures > 0)
        .map(({ key, failures, notBefore }) => ({ key, failures, waitMs: Math.max(0, notBefore - now) })),
    };
  }

  /** Resolves once no key is running or due. Keys that wait for their requested time do not count. */
  idle(): Promise<void> {
    return this.idleness.wait();
  }

  /** Cancels all pending requests and starts no reconciliations. Running ones continue; `idle` waits for them. */
  close(): void {
    this.closed = true;
    this.again?.cancel();
    this.turn?.cancel();
    for (const entry of [...this.entries.values()]) {
      this.withdraw(entry);
      if (entry.startedAt === undefined) this.entries.delete(entry.key);
    }
    this.openIfIdle();
  }

  /** Closes the queue and aborts the signal of the running reconciliations. */
  abort(reason: Error): void {
    this.close();
    this.stopping.abort(reason);
  }

  private request(entry: Entry<K>, at: number, now: number): void {
    if (entry.at <= at) return;
    entry.at = at;
    if (entry.startedAt === undefined) this.arm(entry, now);
  }

  private withdraw(entry: Entry<K>): void {
    entry.at = Infinity;
    entry.timer?.cancel();
    this.due.delete(entry.key);
  }

  private arm(entry: Entry<K>, now: number): void {
    if (this.due.has(entry.key)) return;
    entry.timer?.cancel();
    const at = Math.max(entry.at, entry.notBefore);
    if (at > now) {
      entry.timer = this.timers.schedule(at, () => {
        this.due.set(entry.key, at);
        this.pumpSoon();
      });
      return;
    }
    this.due.set(entry.key, now);
    this.pumpSoon();
  }

  /** Schedules `pump` in the clock's next turn, when all events of this moment are known. */
  private pumpSoon(): void {
    this.idleness.close();
    this.turn ??= this.timers.schedule(this.options.clock.monotonic(), () => {
      this.turn = undefined;
      this.pump();
    });
  }

  private pump(): void {
    this.again?.cancel();
    this.again = undefined;
    while (this.due.size > 0) {
      const { next, againMs } = this.choose();
      if (againMs !== undefined) {
        this.again = this.timers.schedule(this.options.clock.monotonic() + againMs, () => this.pump());
      }
      const entry = next === undefined || !this.due.delete(next) ? undefined : this.entries.get(next);
      if (entry === undefined) break;
      this.start(entry);
    }
    this.openIfIdle();
  }

  private choose(): Selection<K> {
    const { select, concurrency = Infinity } = this.options;
    if (select !== undefined) {
      return select(Array.from(this.due, ([key, since]) => ({ key, since })), this.running); // prettier-ignore
    }
    if (this.running.size >= concurrency) return { next: undefined };
    const first = this.due.keys().next();
    return { next: first.done === true ? undefined : first.value };
  }

  private start(entry: Entry<K>): void {
    const { key } = entry;
    const { clock, tasks, name, about } = this.options;
    entry.at = Infinity;
    entry.startedAt = clock.monotonic();
    this.running.add(key);
    tasks.run(name(key), (task) => this.run(entry, task), about && (() => about(key)), this.origin);
  }

  private async run(entry: Entry<K>, task: TaskHandle): Promise<void> {
    try {
      const result = await this.options.reconcile(entry.key, { signal: this.stopping.signal, task });
      this.succeeded(entry, result);
    } catch (error) {
      this.failed(entry, error);
    } finally {
      this.ended(entry);
    }
  }

  private succeeded(entry: Entry<K>, result: Reconciled): void {
    entry.failures = 0;
    entry.notBefore = -Infinity;
    if (result === 'done') return;
    const now = this.options.clock.monotonic();
    if ('pauseMs' in result) {
      entry.notBefore = now + result.pauseMs;
      this.request(entry, now, now);
    } else {
      this.request(entry, now + result.requeueAfterMs, now);
    }
  }

  private failed(entry: Entry<K>, error: unknown): void {
    const retry = this.stopping.signal.aborted ? undefined : this.retryLater(entry, error);
    const { onFailure } = this.options;
    if (onFailure === undefined) this.logFailure(entry.key, error, retry);
    else onFailure(entry.key, error, retry);
  }

  private retryLater(entry: Entry<K>, error: unknown): Retry {
    const { clock, random, backOff } = this.options;
    const now = clock.monotonic();
    entry.failures += 1;
    const waitMs = backOffMs(entry.failures, error, random, backOff);
    entry.notBefore = now + waitMs;
    this.request(entry, now, now);
    return { failures: entry.failures, waitMs };
  }

  private logFailure(key: K, error: unknown, retry: Retry | undefined): void {
    const { log, name, about } = this.options;
    const fields = { ...about?.(key), task: name(key), error };
    if (retry === undefined) log.debug('Background work ended because it was aborted', fields);
    else {
      const { failures, waitMs } = retry;
      log.warn('Background work failed; retrying', { ...fields, failures, seconds: waitMs / 1000 });
    }
  }

  private ended(entry: Entry<K>): void {
    entry.startedAt = undefined;
    this.running.delete(entry.key);
    if (this.closed || entry.at === Infinity) this.entries.delete(entry.key);
    else this.arm(entry, this.options.clock.monotonic());
    if (this.due.size > 0) this.pumpSoon();
    else this.openIfIdle();
  }

  private openIfIdle(): void {
    if (this.running.size === 0 && this.due.size === 0) this.idleness.open();
  }
}
