/** How many requests a provider works on at a time (`max-concurrency`). Pools that find none left get one in turn. */
export class Concurrency {
  private inUse = 0;
  /** Who waits for a place, the first to get one first. */
  private readonly line = new Set<() => void>();

  /** `limit` may be `Infinity`. */
  constructor(private readonly limit: number) {}

  /** Whether there is a place for whoever has this listener, beside those who wait for longer. */
  isAvailable(listener: () => void): boolean {
    let places = this.limit - this.inUse;
    for (const waiting of this.line) {
      if (places <= 0 || waiting === listener) break;
      places -= 1;
    }
    return places > 0;
  }

  /** Gets in line; the listener is called when there is a place. */
  wait(listener: () => void): void {
    this.line.add(listener);
  }

  /** Gives up waiting; the place is for the next in line. */
  leave(listener: () => void): void {
    if (this.line.delete(listener)) this.callNext();
  }

  /** Takes a place. */
  begin(listener: () => void): void {
    this.inUse += 1;
    // Who wants another goes to the end of the line.
    this.line.delete(listener);
  }

  end(): void {
    this.inUse -= 1;
    this.callNext();
  }

  private callNext(): void {
    let places = this.limit - this.inUse;
    for (const listener of this.line) {
      if (places <= 0) return;
      places -= 1;
      listener();
    }
  }
}
