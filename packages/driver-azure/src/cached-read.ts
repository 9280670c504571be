/** Caches values that rarely change and are expensive to read. */

import type { Call, Clock } from '@nodepool/core';

/** Caches a value; concurrent readers share one load. A failure is not cached. */
export class CachedRead<T> {
  private value: { readonly value: T; readonly at: number } | undefined;
  private flight: Promise<T> | undefined;

  constructor(
    private readonly load: (call: Call) => Promise<T>,
    private readonly makeCall: () => Call,
    private readonly clock: Clock,
    private readonly maxAgeMs: number,
  ) {}

  /** The last value that was read, even if it has expired. */
  get latest(): T | undefined {
    return this.value?.value;
  }

  async read(maxAgeMs = this.maxAgeMs): Promise<T> {
    const { value } = this;
    if (value !== undefined && this.clock.monotonic() - value.at < maxAgeMs) return value.value;
    this.flight ??= this.start();
    return this.flight;
  }

  private async start(): Promise<T> {
    const at = this.clock.monotonic();
    try {
      const value = await this.load(this.makeCall());
      this.value = { value, at };
      return value;
    } finally {
      this.flight = undefined;
    }
  }
}
