/**
 * Selects the next upload. Uploads share a limited number of places. A provider without a place waits only a few
 * minutes for one, so that uploads to a slow or failing provider do not block those to other providers.
 */

/** Time (ms) after which a provider with no running upload may exceed the number of places. */
export const UPLOAD_START_DELAY_MS = 300_000;

export interface Waiting {
  readonly provider: string;
  /** Start of the wait, `Clock.monotonic` milliseconds. */
  readonly since: number;
}

export interface NextUpload<W> {
  /** The upload to start; undefined if none may start now. */
  readonly next: W | undefined;
  /** Milliseconds until an upload may start although all places are taken; undefined if only a change allows it. */
  readonly againMs: number | undefined;
}

/** Selects an upload fairly: the provider with the fewest running uploads first, then the longest wait. */
export function nextUpload<W extends Waiting>(
  waiting: Iterable<W>,
  running: ReadonlyMap<string, number>,
  places: number,
  now: number,
): NextUpload<W> {
  const inOrder = [...waiting].sort(
    (a, b) => (running.get(a.provider) ?? 0) - (running.get(b.provider) ?? 0) || a.since - b.since,
  );
  const [first] = inOrder;
  if (first === undefined || places === 0) return { next: undefined, againMs: undefined };
  const taken = [...running.values()].reduce((sum, count) => sum + count, 0);
  if (taken < places) return { next: first, againMs: undefined };
  if ((running.get(first.provider) ?? 0) > 0) return { next: undefined, againMs: undefined };
  const leftMs = UPLOAD_START_DELAY_MS - (now - first.since);
  return leftMs <= 0 ? { next: first, againMs: undefined } : { next: undefined, againMs: leftMs };
}
