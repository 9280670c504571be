/** Waits of requests, and their quantiles. */

/** One request of a run. Times in milliseconds since the start. */
export interface Wait {
  readonly writtenAt: number;
  /** Time from the write of the request until it was fulfilled; undefined if it was not. */
  readonly waitMs: number | undefined;
  /** The reason why it was not fulfilled. */
  readonly failure: string | undefined;
  /** Provider of the node. */
  readonly provider: string | undefined;
}

/** Returns the nearest-rank quantile of the waits; Infinity if too many requests were not fulfilled. */
export function quantile(waits: readonly Wait[], share: number): number {
  const sorted = waits.map(({ waitMs = Infinity }) => waitMs).sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/** Returns the requests that were written in the period. */
export function writtenBetween(waits: readonly Wait[], fromMs: number, toMs: number): readonly Wait[] {
  return waits.filter(({ writtenAt }) => writtenAt >= fromMs && writtenAt < toMs);
}
