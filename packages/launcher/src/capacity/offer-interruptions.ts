/**
 * Counts the instances that the nodes of an offer have lost, and decides when the offer is avoided for a while: a spot
 * offer that accepts every launch and loses the instances again.
 */

/** Time during which interruptions count together (ms). */
export const INTERRUPTION_WINDOW_MS = 600_000;
/** An offer is avoided from this number of interruptions within the window on, and this share of its nodes. */
const AVOIDED_FROM = { count: 3, share: 0.1 } as const;

export class OfferInterruptions {
  /** Times (milliseconds since the epoch) of the interruptions within the window, oldest first, by offer. */
  private readonly times = new Map<string, number[]>();

  /**
   * Records an interruption. `nodesOf` returns the number of the offer's nodes, those that have lost their instance
   * included. Returns a description if the offer must be avoided.
   */
  record(offer: string, at: number, now: number, nodesOf: () => number): string | undefined {
    const recent = [...(this.times.get(offer) ?? []), at].filter((each) => now - each < INTERRUPTION_WINDOW_MS);
    if (recent.length === 0) {
      this.times.delete(offer);
      return undefined;
    }
    this.times.set(offer, recent);
    const { count, share } = AVOIDED_FROM;
    if (recent.length < count) return undefined;
    const nodes = Math.max(nodesOf(), recent.length);
    if (recent.length < nodes * share) return undefined;
    return `${recent.length} of ${nodes} nodes have lost their instance within ${INTERRUPTION_WINDOW_MS / 60_000} minutes`;
  }
}
