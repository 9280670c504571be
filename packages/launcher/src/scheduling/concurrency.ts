/**
 * How many requests a provider works on at a time (`max-concurrency`). Pools that find no place left get one in turn, those
 * with requests of the best priority first.
 */
export class Concurrency {
  private inUse = 0;
  /** Listeners of the pools that wait for a place, with the priority of their request; the first in line first. */
  private readonly line = new Map<() => void, string>();

  /** `limit` may be `Infinity`. */
  constructor(private readonly limit: number) {}

  /** Returns true if there is a place for this listener's request, beside those that come before it. */
  isAvailable(listener: () => void, priority: string): boolean {
    let places = this.limit - this.inUse;
    let passed = false;
    for (const [waiting, theirs] of this.line) {
      passed ||= waiting === listener;
      if (waiting !== listener && (theirs < priority || (theirs === priority && !passed))) places -= 1;
    }
    return places > 0;
  }

  /** Gets in line, or stays there; the listener is called when there is a place. */
  wait(listener: () => void, priority: string): void {
    const before = this.line.get(listener);
    if (before === undefined || priority < before) this.line.set(listener, priority);
  }

  /** Gives up waiting; the place is for the next in line. */
  leave(listener: () => void): void {
    if (this.line.delete(listener)) this.callNext();
  }

  /** Takes a place. */
  begin(listener: () => void): void {
    this.inUse += 1;
    // A pool that needs another place goes to the end of the line.
    this.line.delete(listener);
  }

  end(): void {
    this.inUse -= 1;
    this.callNext();
  }

  private callNext(): void {
    const places = this.limit - this.inUse;
    if (places <= 0) return;
    const inOrder = [...this.line].sort(([, a], [, b]) => (a < b ? -1 : a > b ? 1 : 0));
    for (const [listener] of inOrder.slice(0, places)) listener();
  }
}
