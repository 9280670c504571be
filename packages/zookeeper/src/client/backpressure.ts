/** Limits the unanswered calls of a client and their bytes. */

import { OverloadedError } from '../errors.js';

export class Backpressure {
  calls = 0;
  bytes = 0;
  /** True while at most half of either limit is used. */
  belowHighWater = true;

  /** `onDrained` is called when the usage returns to the high-water mark or below. */
  constructor(
    private readonly maxCalls: number,
    private readonly maxBytes: number,
    private readonly onDrained: () => void,
  ) {}

  /** Returns the error of a request that would exceed the limits, else undefined. Any size fits if none is pending. */
  refusal(bytes: number, operation: string, path: string | undefined): OverloadedError | undefined {
    if (this.calls === 0) return undefined;
    if (this.calls < this.maxCalls && this.bytes + bytes <= this.maxBytes) return undefined;
    const message =
      `${operation} ${path ?? ''}: not sent, because ${this.calls} calls with ${this.bytes} bytes are unanswered ` +
      `(maxPendingCalls ${this.maxCalls}, maxPendingBytes ${this.maxBytes}); wait for drained()`;
    return new OverloadedError('overloaded', message, { operation, path });
  }

  add(bytes: number): void {
    this.calls++;
    this.bytes += bytes;
    if (this.calls * 2 > this.maxCalls || this.bytes * 2 > this.maxBytes) this.belowHighWater = false;
  }

  remove(bytes: number): void {
    this.calls--;
    this.bytes -= bytes;
    if (this.belowHighWater || this.calls * 2 > this.maxCalls || this.bytes * 2 > this.maxBytes) return;
    this.belowHighWater = true;
    this.onDrained();
  }
}
