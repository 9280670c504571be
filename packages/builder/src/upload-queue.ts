/**
 * Which upload is next. Uploads share so many places; a provider that has none waits for one no longer than a few
 * minutes, whoever holds them: the uploads of one slow or failing provider must not hold up those to the others.
 */

/** So long, milliseconds, a provider without a running upload keeps to the number of places. */
export const PATIENCE_MS = 300_000;

export interface Waiting {
  readonly provider: string;
  /** `Clock.monotonic` milliseconds since when it waits. */
  readonly since: number;
}

export interface NextUpload<W> {
  /** Undefined: none may begin now. */
  readonly next: W | undefined;
  /** Milliseconds after which one may begin although all places are taken; undefined: not before something changes. */
  readonly againMs: number | undefined;
}

/** Fair between providers: the one with the fewest running uploads first, then who has waited longest. */
export function nextUpload<W extends Waiting>(
  waiting: Iterable<W>,
  /** Running uploads by provider. */
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
  const leftMs = PATIENCE_MS - (now - first.since);
  return leftMs <= 0 ? { next: first, againMs: undefined } : { next: undefined, againMs: leftMs };
}
