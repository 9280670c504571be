/** One session with the ensemble, and the clock that tells when it must be over. */

import { setMaxListeners } from 'node:events';
import type { Session } from '../api.js';
import type { Clock, Timer } from '../clock.js';
import { SessionLostError } from '../errors.js';

/** A timer that is later than this means that the process was held up. */
const HELD_UP_MS = 50;

export class ClientSession implements Session {
  readonly id: bigint;
  readonly password: Uint8Array;
  readonly readOnly: boolean;
  timeoutMs: number;
  /** Set by whoever holds the connection. */
  confirmed = false;
  private readonly controller = new AbortController();
  /** When the newest request was sent that a server has answered since: it counted the timeout from then or later. */
  private provenAt: number;
  private timer: Timer | undefined;

  /** `onExpired` is called once, when the session must have expired by our own clock; it must `end` the session. */
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
    // Everything that is bound to the session listens here; a warning at the eleventh listener would be a false one.
    setMaxListeners(0, this.controller.signal);
    this.schedule();
  }

  get lost(): AbortSignal {
    return this.controller.signal;
  }

  /** As shown in the server's log. */
  get name(): string {
    return `0x${BigInt.asUintN(64, this.id).toString(16)}`;
  }

  /** A server answered a request that was sent at `sentAt` (monotonic). */
  proveAlive(sentAt: number): void {
    if (sentAt > this.provenAt) this.provenAt = sentAt;
  }

  /** Resumed at a server that may have negotiated another timeout. */
  resume(timeoutMs: number, sentAt: number): void {
    this.timeoutMs = timeoutMs;
    this.proveAlive(sentAt);
    this.timer?.cancel();
    this.schedule();
  }

  /** Ends it. Idempotent. */
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
   * `suspected`: the session was found to be over a moment ago, and too late. When this process itself was held up, the
   * answer that proves the session lies in the socket unread; what is there is read before the second look.
   */
  private check(suspected: boolean): void {
    const overdueMs = this.clock.monotonic() - (this.provenAt + this.timeoutMs);
    if (overdueMs < 0) {
      this.schedule();
      return;
    }
    if (!suspected && overdueMs > HELD_UP_MS) {
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
