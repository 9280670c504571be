/** How much waits for answers, and how much may: the back-pressure of a client. */

import { OverloadedError } from '../errors.js';

export class Backpressure {
  calls = 0;
  bytes = 0;
  private blocked = false;

  /** `onDrained` is called when it falls to half of what is allowed, after having been above. */
  constructor(
    private readonly maxCalls: number,
    private readonly maxBytes: number,
    private readonly onDrained: () => void,
  ) {}

  /** At most half of what is allowed is used. */
  get belowHighWater(): boolean {
    return this.calls * 2 <= this.maxCalls && this.bytes * 2 <= this.maxBytes;
  }

  /** Why a request of this size is refused now, if it is. A single one is never refused. */
  refusal(bytes: number, operation: string, path: string | undefined): OverloadedError | undefined {
    if (this.calls === 0) return undefined;
    if (this.calls < this.maxCalls && this.bytes + bytes <= this.maxBytes) return undefined;
    const message =
      `${operation} ${path ?? ''}: not sent, because ${this.calls} calls with ${this.bytes} bytes wait for their answers ` +
      `(maxPendingCalls ${this.maxCalls}, maxPendingBytes ${this.maxBytes}); wait for drained()`;
    return new OverloadedError('overloaded', message, { operation, path });
  }

  add(bytes: number): void {
    this.calls++;
    this.bytes += bytes;
    if (!this.blocked && !this.belowHighWater) this.blocked = true;
  }

  remove(bytes: number): void {
    this.calls--;
    this.bytes -= bytes;
    if (this.blocked && this.belowHighWater) {
      this.blocked = false;
      this.onDrained();
    }
  }
}
