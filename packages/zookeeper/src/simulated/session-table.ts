/** The sessions of the simulated server: made, resumed, kept alive by what their clients send, and ended. */

import type { Clock, Timer } from '../clock.js';
import type { SimulatedConnection } from './connection.js';
import type { Hello } from './wire.js';

/** One session as a checker sees it. */
export interface ServerSession {
  readonly id: bigint;
  readonly timeoutMs: number;
  readonly connected: boolean;
}

export interface SessionRecord {
  readonly id: bigint;
  readonly password: Buffer;
  /** It only reads, and is known to nobody but the server that lost touch with the others. */
  readonly readOnly: boolean;
  timeoutMs: number;
  connection: SimulatedConnection | undefined;
  /** Monotonic. */
  expiresAt: number;
  timer: Timer | undefined;
}

export interface SessionLimits {
  readonly tickMs: number;
  readonly minTimeoutMs: number;
  readonly maxTimeoutMs: number;
}

const PASSWORD_BYTES = 16;
/** Real ones have the number of the server in their first byte; positive as most are. */
const FIRST_ID = 0x0100_0000_0000_0000n;

export class SessionTable {
  private readonly sessions = new Map<bigint, SessionRecord>();
  private lastId = FIRST_ID;
  private running = true;

  /** `onEnd` is called when a session ended, whatever the reason; it still has its connection, if any. */
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

  /** Makes a session, or resumes the one that is named. Undefined: that one expired. */
  open(hello: Hello, connection: SimulatedConnection, readOnly: boolean): SessionRecord | undefined {
    const session = hello.sessionId === 0n ? this.make(readOnly) : this.sessions.get(hello.sessionId);
    if (session === undefined || (hello.sessionId !== 0n && !session.password.equals(hello.password))) return undefined;
    const { connection: before } = session;
    session.connection = connection;
    session.timeoutMs = Math.min(Math.max(hello.timeoutMs, this.limits.minTimeoutMs), this.limits.maxTimeoutMs);
    connection.sessionId = session.id;
    // A client that comes back before its old connection was found dead takes the session with it.
    before?.closeByServer('the session moved to another connection');
    this.extend(session);
    return session;
  }

  /** Heard of it. False: there is no such session on this connection. */
  touch(id: bigint, connection: SimulatedConnection): boolean {
    const session = this.sessions.get(id);
    if (session === undefined || session.connection !== connection) return false;
    this.extend(session);
    return true;
  }

  /** The connection is gone; the session may be resumed until it expires. */
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

  /** Ends one on request of its client, which closes the connection once it has the answer. */
  farewell(id: bigint): void {
    const session = this.sessions.get(id);
    if (session !== undefined) session.connection = undefined;
    this.end(id);
  }

  /** Those that only read go without a trace. */
  forgetReadOnly(): void {
    for (const session of [...this.sessions.values()]) {
      if (!session.readOnly) continue;
      this.unschedule(session);
      this.sessions.delete(session.id);
    }
  }

  /** From now on none expires. */
  stop(): void {
    this.running = false;
    for (const session of this.sessions.values()) this.unschedule(session);
  }

  /** All have their full timeout again. */
  start(): void {
    this.running = true;
    for (const session of this.sessions.values()) this.extend(session);
  }

  snapshot(): Pick<SessionRecord, 'id' | 'password' | 'timeoutMs'>[] {
    const all = [...this.sessions.values()].filter(({ readOnly }) => !readOnly);
    return all.map(({ id, password, timeoutMs }) => ({ id, password, timeoutMs }));
  }

  /** Replaces all sessions; call it while stopped. */
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

  /** Sessions end at full ticks, never before their timeout (`ExpiryQueue.roundToNextInterval`). */
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
