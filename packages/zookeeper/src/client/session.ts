/** A session with the ensemble, and the timer of its expiration. */

import { setMaxListeners } from 'node:events';
import type { Session } from '../api.js';
import type { Clock, Timer } from '../clock.js';
import { SessionLostError } from '../errors.js';

/** Milliseconds. A timer later than this means that the process was blocked. */
const BLOCKED_MS = 50;

export class ClientSession implements Session {
  readonly id: bigint;
  readonly password: Uint8Array;
  readonly readOnly: boolean;
  timeoutMs: number;
  /** Set by the session manager. */
  confirmed = false;
  private readonly controller = new AbortController();
  /** Send time of the newest answered request. The server restarted the timeout then or later. */
  private provenAt: number;
  private timer: Timer | undefined;

  /** `onExpired` is called once, when the session has expired by the client's clock. It must call `end`. */
  constructor(
    made: {
      readonly id: bigint;
      readonly password: Uint8Array;
      readonly timeoutMs: number;
      readonly provenAt: number;
      readonly readOnly?: boolean;
    },
    private readonly clock: Clock,
    private readonly onExpired: (session: ClientSession, error: SessionLostError) => void,
  ) {
    this.id = made.id;
    this.password = made.password;
    this.readOnly = made.readOnly ?? false;
    this.timeoutMs = made.timeoutMs;
    this.provenAt = made.provenAt;
    // Many listeners are normal, so Node.js must not warn at the eleventh.
    setMaxListeners(0, this.controller.signal);
    this.schedule();
  }

  get lost(): AbortSignal {
    return this.controller.signal;
  }

  /** Id as in the server's log. */
  get name(): string {
    return `0x${BigInt.asUintN(64, this.id).toString(16)}`;
  }

  /** Records that a server answered a request that was sent at `sentAt` (monotonic). */
  proveAlive(sentAt: number): void {
    if (sentAt > this.provenAt) this.provenAt = sentAt;
  }

  /** Records that a server resumed the session, perhaps with another timeout. */
  resume(timeoutMs: number, sentAt: number): void {
    this.timeoutMs = timeoutMs;
    this.proveAlive(sentAt);
    this.timer?.cancel();
    this.schedule();
  }

  /** Ends the session. Idempotent. */
  end(error: SessionLostError): void {
    if (this.controller.signal.aborted) return;
    this.confirmed = false;
    this.timer?.cancel();
    this.controller.abort(error);
  }

  private schedule(suspected = false): void {
    const left = this.provenAt + this.timeoutMs - this.clock.monotonic();
    this.timer = this.clock.schedule(Math.max(0, left), () => this.check(suspected), { background: true });
  }

  /**
   * Expires an overdue session. If the timer is late, a second check (`suspected`) follows in a later turn, because the
   * answer that confirms the session may be unread in the socket.
   */
  private check(suspected: boolean): void {
    const overdueMs = this.clock.monotonic() - (this.provenAt + this.timeoutMs);
    if (overdueMs < 0) {
      this.schedule();
      return;
    }
    if (!suspected && overdueMs > BLOCKED_MS) {
      this.schedule(true);
      return;
    }
    const error = new SessionLostError(
      'session-lost',
      `session ${this.name} is lost: no server has confirmed it for its timeout of ${this.timeoutMs} ms`,
    );
    this.onExpired(this, error);
  }
}
