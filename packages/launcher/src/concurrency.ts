/** How many requests a provider works on at a time (`max-concurrency`). */
export class Concurrency {
  private inUse = 0;
  private readonly listeners = new Set<() => void>();

  /** `limit` may be `Infinity`. */
  constructor(private readonly limit: number) {}

  get available(): boolean {
    return this.inUse < this.limit;
  }

  begin(): void {
    this.inUse += 1;
  }

  end(): void {
    const wasFull = !this.available;
    this.inUse -= 1;
    if (wasFull) for (const listener of this.listeners) listener();
  }

  /** Called when there is room again. Returns how to stop listening. */
  onFree(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
