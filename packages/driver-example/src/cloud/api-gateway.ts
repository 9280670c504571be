/** The gateway of all calls to the example cloud: rate limit, latency and faults. */

import { sleep, type Clock, type RandomSource } from '@nodepool/core';
import type { CloudSettings, Fault, Range } from './settings.js';
import { CloudError } from './types.js';

/** A response of the cloud. Synchronous without latency, so that such a cloud needs no timers or promises. */
export type Answer<T> = T | Promise<T>;

/** Faults that can affect a call. */
export interface CallFaults {
  /** Fault that makes the call fail with status 500 before it takes effect. */
  readonly error?: Fault;
  /** True if the call changes state, in which case its response can get lost. */
  readonly write: boolean;
}

/** Applies the rate limit, latency and faults to calls. */
export class ApiGateway {
  private tokens: number;
  private refilledAt: number;

  constructor(
    private readonly clock: Clock,
    private readonly random: RandomSource,
    private settings: CloudSettings,
  ) {
    this.tokens = bucketSize(settings);
    this.refilledAt = clock.monotonic();
  }

  configure(settings: CloudSettings): void {
    this.settings = settings;
    this.tokens = Math.min(this.tokens, bucketSize(settings));
  }

  /** Serves a call: runs `effect` after half the latency, even if the caller has gone. Fails with `CloudError`. */
  serve<T>(faults: CallFaults, effect: () => T): Answer<T> {
    this.admit();
    const latency = this.draw(this.settings.apiLatencyMs);
    if (latency === 0) return this.perform(faults, effect);
    return this.performSlowly(latency / 2, faults, effect);
  }

  /** Throws if the call exceeds the rate limit or the credentials are rejected. */
  admit(): void {
    const rate = this.settings.callsPerSecond;
    if (rate !== Infinity) this.takeToken(rate);
    if (this.happens('auth-errors')) throw new CloudError('unauthorized', 'the credentials are refused');
  }

  /** Throws with the probability of the fault `lost-answers`. */
  mayLoseAnswer(): void {
    if (this.happens('lost-answers')) throw new CloudError('answer-lost', 'the answer was lost');
  }

  /** Returns true with the probability of the fault. */
  happens(fault: Fault): boolean {
    const rate = this.settings.faults[fault];
    return rate > 0 && this.random.next() < rate;
  }

  draw(range: Range): number {
    const least = range[0];
    const greatest = range[1];
    return least === greatest ? least : least + this.random.next() * (greatest - least);
  }

  private perform<T>(faults: CallFaults, effect: () => T): T {
    if (faults.error !== undefined && this.happens(faults.error)) {
      throw new CloudError('internal', 'internal error of the cloud');
    }
    const answer = effect();
    if (faults.write) this.mayLoseAnswer();
    return answer;
  }

  private async performSlowly<T>(halfMs: number, faults: CallFaults, effect: () => T): Promise<T> {
    await sleep(this.clock, halfMs);
    const answer = this.perform(faults, effect);
    await sleep(this.clock, halfMs);
    return answer;
  }

  private takeToken(rate: number): void {
    const now = this.clock.monotonic();
    this.tokens = Math.min(bucketSize(this.settings), this.tokens + ((now - this.refilledAt) / 1000) * rate);
    this.refilledAt = now;
    if (this.tokens < 1) {
      const seconds = Math.ceil((1 - this.tokens) / rate);
      throw new CloudError('throttled', `more than ${rate} calls per second`, seconds);
    }
    this.tokens -= 1;
  }
}

function bucketSize(settings: CloudSettings): number {
  return settings.callsPerSecond === Infinity ? 1 : Math.max(1, settings.callsPerSecond);
}
