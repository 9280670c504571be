/** Deduplicates reads that several callers request at the same time. */

import { sleep, type Call, type Clock } from '@nodepool/core';

/** Creates calls that several callers share and that end with the provider instead of with one caller. */
export type MakeCall = () => Call;

/** Time that a read waits for more callers to join (ms). */
const GATHER_MS = 50;

/** One read for all concurrent callers, without caching: a caller only gets data that was read after its request. */
export class FreshRead<T> {
  /** The read that callers can still join. A read in progress may have missed recent changes. */
  private gathering: Promise<T> | undefined;
  private flight: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly load: (call: Call) => Promise<T>,
    private readonly makeCall: MakeCall,
    private readonly clock: Clock,
  ) {}

  read(): Promise<T> {
    this.gathering ??= this.gather(this.flight);
    return this.gathering;
  }

  private async gather(before: Promise<unknown>): Promise<T> {
    await sleep(this.clock, GATHER_MS, this.makeCall().signal);
    await Promise.allSettled([before]);
    this.gathering = undefined;
    const flight = this.load(this.makeCall());
    this.flight = flight;
    return flight;
  }
}

/** Caches a value that rarely changes until it expires or `forget` is called. */
export class CachedRead<T> {
  private kept: { readonly value: T; readonly at: number } | undefined;
  private flight: Promise<T> | undefined;
  private forgotten = false;

  constructor(
    private readonly load: (call: Call) => Promise<T>,
    private readonly makeCall: MakeCall,
    private readonly clock: Clock,
    private readonly maxAgeMs: number,
  ) {}

  /** The last value that was read, even if it has expired; undefined if there is none yet. */
  get latest(): T | undefined {
    return this.kept?.value;
  }

  /** `maxAgeMs` is the maximum age of the value, if lower than the default (ms). */
  async read(maxAgeMs = this.maxAgeMs): Promise<T> {
    const { kept } = this;
    if (kept !== undefined && !this.forgotten && this.clock.monotonic() - kept.at < maxAgeMs) return kept.value;
    this.flight ??= this.start();
    return this.flight;
  }

  /** Invalidates the value. The next caller starts a new read. */
  forget(): void {
    this.forgotten = true;
    this.flight = undefined;
  }

  private start(): Promise<T> {
    const at = this.clock.monotonic();
    this.forgotten = false;
    const flight = this.load(this.makeCall())
      .then((value) => {
        if (this.flight === flight) this.kept = { value, at };
        return value;
      })
      .finally(() => {
        if (this.flight === flight) this.flight = undefined;
      });
    return flight;
  }
}
