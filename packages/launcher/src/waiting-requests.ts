/** The requests that a pool could serve, in the order of service. */

import { compareRequests, type RequestEntry } from '@nodepool/core';

export class WaitingRequests {
  /** Sorted by `compareRequests`. */
  private readonly ordered: RequestEntry[] = [];
  private readonly byId = new Map<string, RequestEntry>();

  get size(): number {
    return this.ordered.length;
  }

  /** Adds the request, or moves it to where its priority now says. */
  put(entry: RequestEntry): void {
    this.remove(entry.id);
    this.ordered.splice(this.position(entry), 0, entry);
    this.byId.set(entry.id, entry);
  }

  /** False when it was not there. */
  remove(id: string): boolean {
    const entry = this.byId.get(id);
    if (entry === undefined) return false;
    this.byId.delete(id);
    this.ordered.splice(this.position(entry), 1);
    return true;
  }

  first(): RequestEntry | undefined {
    return this.ordered[0];
  }

  ids(): string[] {
    return [...this.byId.keys()];
  }

  /** Index of the entry, or where it belongs. */
  private position(entry: RequestEntry): number {
    let low = 0;
    let high = this.ordered.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.ordered[middle];
      if (other !== undefined && compareRequests(other.request, entry.request) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
