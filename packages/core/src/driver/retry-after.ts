/** The header `Retry-After` (RFC 9110), in which a cloud demands a wait. */

/**
 * Longest wait that a cloud can demand, in milliseconds; a longer one is shortened. A maintenance page often demands
 * more than the outage takes, and one call per minute is no load.
 */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Returns the wait in milliseconds, which the header contains as seconds or as a date. Returns undefined if the header
 * is missing or invalid. `now`: milliseconds since the epoch on the clock of the server, see `serverTime`.
 */
export function retryAfterMsIn(header: string | undefined, now: number): number | undefined {
  if (header === undefined || header === '') return undefined;
  const ms = /^\d+(\.\d+)?$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

/**
 * Returns the time at which a server answered, from the header `Date` of its answer. A date in `Retry-After` is one of
 * the server's clock, which can differ from the clock of this host by hours. `now` replaces a missing or invalid
 * header.
 */
export function serverTime(date: string | undefined, now: number): number {
  const ms = Date.parse(date ?? '');
  return Number.isNaN(ms) ? now : ms;
}
