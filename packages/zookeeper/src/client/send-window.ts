/**
 * Limits the requests in flight on one connection, so that answers arrive early enough to confirm the session and pings
 * do not wait. The limit adapts to the server's speed, as TCP's congestion window does.
 */

/** A request counts as one unit, and one more for each full 4096 bytes. */
const BYTES_PER_UNIT = 4096;
const FIRST_LIMIT = 32;
const LOWEST_LIMIT = 8;
/** Units: the server's default limit for all its connections (`globalOutstandingLimit`). */
const HIGHEST_LIMIT = 1000;
/** Share of the session timeout. Slower answers reduce the limit, answers faster than half of it raise the limit. */
const SLOW_SHARE = 1 / 4;

export class SendWindow {
  private limit = FIRST_LIMIT;
  private inFlight = 0;
  private slowMs = Infinity;
  /** Monotonic. Answers to requests sent before the last reduction do not count. */
  private reducedAt = -Infinity;

  /** Resets the limit for a new connection. */
  reset(sessionTimeoutMs: number): void {
    this.limit = FIRST_LIMIT;
    this.inFlight = 0;
    this.slowMs = sessionTimeoutMs * SLOW_SHARE;
    this.reducedAt = -Infinity;
  }

  /** Counts a request of this size as sent if it may be sent now, else returns false. A single request always fits. */
  admit(bytes: number): boolean {
    const inFlight = this.inFlight + units(bytes);
    if (this.inFlight > 0 && inFlight > this.limit) return false;
    this.inFlight = inFlight;
    return true;
  }

  /** A request of this size, sent at `sentAt`, was answered at `now` (both monotonic). */
  answered(bytes: number, sentAt: number, now: number): void {
    const size = units(bytes);
    this.inFlight -= size;
    const tookMs = now - sentAt;
    if (tookMs > this.slowMs) {
      if (sentAt < this.reducedAt) return;
      this.limit = Math.max(LOWEST_LIMIT, Math.floor(this.limit / 2));
      this.reducedAt = now;
    } else if (tookMs * 2 <= this.slowMs) {
      this.limit = Math.min(HIGHEST_LIMIT, this.limit + size);
    }
  }
}

function units(bytes: number): number {
  return 1 + Math.floor(bytes / BYTES_PER_UNIT);
}
