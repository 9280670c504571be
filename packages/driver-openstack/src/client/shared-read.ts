/** Reads of a cloud that many want at the same time: made once for all of them. */

import { sleep, type Call, type Clock } from '@nodepool/core';

/** Calls on behalf of many, which end with the provider rather than with one of them. */
export type MakeCall = () => Call;

/** So long a read waits for more who want it. */
const GATHER_MS = 50;

/** One read for all who ask at about the same time. Nothing is kept: who asks gets what was read after it asked. */
export class FreshRead<T> {
  /** The read that can still be joined: one that is under way may have missed what happened meanwhile. */
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

/** What changes rarely: kept for a while, read again by the first who asks after that, or after `forget`. */
export class KeptRead<T> {
  private kept: { readonly value: T; readonly at: number } | undefined;
  private flight: Promise<T> | undefined;
  private forgotten = false;

  constructor(
    private readonly load: (call: Call) => Promise<T>,
    private readonly makeCall: MakeCall,
    private readonly clock: Clock,
    private readonly maxAgeMs: number,
  ) {}

  /** What was read last, however old, also if it was forgotten; undefined: nothing yet. */
  get latest(): T | undefined {
    return this.kept?.value;
  }

  /** `maxAgeMs`: how old it may be, if that is less than usual. */
  async read(maxAgeMs = this.maxAgeMs): Promise<T> {
    const { kept } = this;
    if (kept !== undefined && !this.forgotten && this.clock.monotonic() - kept.at < maxAgeMs) return kept.value;
    this.flight ??= this.start();
    return this.flight;
  }

  /** The next who asks gets a value that is read from now on. */
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
