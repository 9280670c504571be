import type { Clock, Timer } from '../clock.js';
import type { SimulatedConnection } from './connection.js';
import type { ConnectRequest } from '../client/protocol.js';

/** A session, for checkers. */
export interface ServerSession {
  readonly id: bigint;
  readonly timeoutMs: number;
  readonly connected: boolean;
}

export interface SessionRecord {
  readonly id: bigint;
  readonly password: Buffer;
  /** True for a session that was created in read-only mode. */
  readonly readOnly: boolean;
  timeoutMs: number;
  connection: SimulatedConnection | undefined;
  /** Monotonic milliseconds. */
  expiresAt: number;
  timer: Timer | undefined;
}

export interface SessionLimits {
  readonly tickMs: number;
  readonly minTimeoutMs: number;
  readonly maxTimeoutMs: number;
}

const PASSWORD_BYTES = 16;
/** Real ids have the server's number in their first byte. */
const FIRST_ID = 0x0100_0000_0000_0000n;

export class SessionTable {
  private readonly sessions = new Map<bigint, SessionRecord>();
  private lastId = FIRST_ID;
  private running = true;

  /** `onEnd` is called when a session was closed or expired. The session still has its connection, if any. */
  constructor(
    private readonly clock: Clock,
    private readonly limits: SessionLimits,
    private readonly onEnd: (session: SessionRecord) => void,
  ) {}

  list(): ServerSession[] {
    return [...this.sessions.values()].map(({ id, timeoutMs, connection }) => ({
      id,
      timeoutMs,
      connected: connection !== undefined,
    }));
  }

  /** Creates a session, or resumes the requested one. Returns undefined if that one has expired. */
  open(request: ConnectRequest, connection: SimulatedConnection, readOnly: boolean): SessionRecord | undefined {
    const session = request.sessionId === 0n ? this.make(readOnly) : this.sessions.get(request.sessionId);
    if (session === undefined || (request.sessionId !== 0n && !session.password.equals(request.password)))
      return undefined;
    const { connection: before } = session;
    session.connection = connection;
    session.timeoutMs = Math.min(Math.max(request.timeoutMs, this.limits.minTimeoutMs), this.limits.maxTimeoutMs);
    connection.sessionId = session.id;
    // The client reconnected before its old connection failed.
    before?.closeByServer('the session moved to another connection');
    this.extend(session);
    return session;
  }

  /** Restarts the timeout of a session. Returns false if the session is not on this connection. */
  touch(id: bigint, connection: SimulatedConnection): boolean {
    const session = this.sessions.get(id);
    if (session === undefined || session.connection !== connection) return false;
    this.extend(session);
    return true;
  }

  /** Detaches a closed connection. Its session can be resumed until it expires. */
  disconnected(connection: SimulatedConnection): void {
    const session = connection.sessionId === undefined ? undefined : this.sessions.get(connection.sessionId);
    if (session?.connection === connection) session.connection = undefined;
  }

  end(id: bigint): void {
    const session = this.sessions.get(id);
    if (session === undefined) return;
    this.sessions.delete(id);
    session.timer?.cancel();
    this.onEnd(session);
  }

  /** Closes a session for its client. The client closes the connection after the answer. */
  close(id: bigint): void {
    const session = this.sessions.get(id);
    if (session !== undefined) session.connection = undefined;
    this.end(id);
  }

  /** Deletes the read-only sessions, without `onEnd`. */
  forgetReadOnly(): void {
    for (const session of [...this.sessions.values()]) {
      if (!session.readOnly) continue;
      this.unschedule(session);
      this.sessions.delete(session.id);
    }
  }

  stop(): void {
    this.running = false;
    for (const session of this.sessions.values()) this.unschedule(session);
  }

  /** Resumes expirations, with the full timeout for all sessions. */
  start(): void {
    this.running = true;
    for (const session of this.sessions.values()) this.extend(session);
  }

  snapshot(): Pick<SessionRecord, 'id' | 'password' | 'timeoutMs'>[] {
    const all = [...this.sessions.values()].filter(({ readOnly }) => !readOnly);
    return all.map(({ id, password, timeoutMs }) => ({ id, password, timeoutMs }));
  }

  /** Replaces all sessions. Call it while stopped. */
  restore(sessions: readonly Pick<SessionRecord, 'id' | 'password' | 'timeoutMs'>[]): void {
    this.sessions.clear();
    for (const { id, password, timeoutMs } of sessions) {
      const state = { connection: undefined, expiresAt: 0, timer: undefined };
      this.sessions.set(id, { id, password, timeoutMs, readOnly: false, ...state });
    }
  }

  private make(readOnly: boolean): SessionRecord {
    const id = ++this.lastId;
    const password = Buffer.alloc(PASSWORD_BYTES);
    password.writeBigInt64BE(id);
    const session: SessionRecord = {
      id,
      password,
      readOnly,
      timeoutMs: 0,
      connection: undefined,
      expiresAt: 0,
      timer: undefined,
    };
    this.sessions.set(id, session);
    return session;
  }

  /** Restarts the timeout, rounded up to a full tick (`ExpiryQueue.roundToNextInterval`). */
  private extend(session: SessionRecord): void {
    const { tickMs } = this.limits;
    session.expiresAt = (Math.floor((this.clock.monotonic() + session.timeoutMs) / tickMs) + 1) * tickMs;
    if (session.timer === undefined && this.running) this.schedule(session);
  }

  private schedule(session: SessionRecord): void {
    const expire = (): void => {
      session.timer = undefined;
      if (session.expiresAt > this.clock.monotonic()) this.schedule(session);
      else this.end(session.id);
    };
    const delayMs = session.expiresAt - this.clock.monotonic();
    session.timer = this.clock.schedule(delayMs, expire, { background: true });
  }

  private unschedule(session: SessionRecord): void {
    session.timer?.cancel();
    session.timer = undefined;
  }
}
