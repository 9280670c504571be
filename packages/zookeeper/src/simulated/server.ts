/**
 * A ZooKeeper server in memory, on a clock of the caller's, for simulations and tests. It keeps the rules of a real
 * server (3.8) for znodes, sessions and watches, and goes wrong on request as real ones do. Its clients are the real
 * client; only what lies between is simulated.
 */

import type { ZooKeeper } from '../api.js';
import type { Clock } from '../clock.js';
import { connectThrough } from '../client/client.js';
import type { ConnectionHandler, OpenWire, Wire } from '../client/connection.js';
import type { ClientOptions } from '../client/options.js';
import { JuteReader } from '../client/jute-reader.js';
import { ConnectionLostError, InvalidArgumentError } from '../errors.js';
import { authenticate } from './access.js';
import { SimulatedConnection, type Delays, type ServerEnd } from './connection.js';
import { isWrite, Refusal, RefusedError, type AnswerValue, type Request } from './messages.js';
import { ZnodeService, type CommitListener, type DataSnapshot } from './service.js';
import { SessionTable, type ServerSession, type SessionRecord } from './session-table.js';
import { answerMessage, connectResponse, readHello, readRequest, refusalMessage } from './wire.js';
import type { DumpedZnode } from './znode-tree.js';

export interface SimulatedServerOptions {
  readonly clock: Clock;
  /** Milliseconds that a message takes in one direction, asked for each if a function. Default 0. */
  readonly latencyMs?: number | (() => number);
  /** Sessions end at full ticks, as in a real server. Default 2000. */
  readonly tickMs?: number;
  /** Limits of what clients may propose. Default: 2 and 20 ticks. */
  readonly minSessionTimeoutMs?: number;
  readonly maxSessionTimeoutMs?: number;
  /** Whether TTL znodes are enabled (`zookeeper.extendedTypesEnabled`). Default: no. */
  readonly ttlNodes?: boolean;
  /** How often empty containers and overdue TTL znodes are looked for. Default 60000. */
  readonly containerCheckMs?: number;
}

/** Options of a client of the simulated server; see `ClientOptions`. */
export interface SimulatedClientOptions extends Pick<
  ClientOptions,
  'readOnly' | 'maxPacketBytes' | 'maxPendingCalls' | 'maxPendingBytes'
> {
  /** Must exist before anything is created below it. */
  readonly chroot?: string;
  readonly sessionTimeoutMs?: number;
  readonly operationTimeoutMs?: number;
  readonly reconnectDelayMs?: readonly [number, number];
  /** The schemes `digest` and `ip` are known. */
  readonly auth?: readonly { readonly scheme: string; readonly auth: string | Uint8Array }[];
  /** Of the client's process; see `PausableClock`. Default: the server's. */
  readonly clock?: Clock;
  /** Default: always in the middle. */
  readonly random?: { next(): number };
}

/** A state that `restore` can bring back. */
export interface ServerSnapshot extends DataSnapshot {
  readonly sessions: readonly Pick<SessionRecord, 'id' | 'password' | 'timeoutMs'>[];
}

interface PlannedLoss {
  readonly when: 'before-applied' | 'after-applied';
  readonly matches: (request: Request) => boolean;
}

/** What lies between one client and the server. */
interface Path {
  /** Usually one; more while the client closes an old session, or looks for a server that takes writes. */
  readonly connections: Set<SimulatedConnection>;
  partition: 'cut' | 'silent' | undefined;
  lagMs: number;
  loss: PlannedLoss | undefined;
}

/** The client parses this, and then asks us for the connection. */
const ADDRESS = '127.0.0.1';

export class SimulatedZooKeeperServer {
  private readonly clock: Clock;
  private readonly service: ZnodeService;
  private readonly sessions: SessionTable;
  private readonly paths = new WeakMap<ZooKeeper, Path>();
  private readonly connections = new Map<SimulatedConnection, Path>();
  private readonly reader = new JuteReader();
  private readonly latency: () => number;
  private running = true;
  private readOnly = false;

  constructor(options: SimulatedServerOptions) {
    const { clock, latencyMs = 0, tickMs = 2000 } = options;
    this.clock = clock;
    this.latency = typeof latencyMs === 'number' ? () => latencyMs : latencyMs;
    this.service = new ZnodeService(clock, options);
    const limits = {
      tickMs,
      minTimeoutMs: options.minSessionTimeoutMs ?? 2 * tickMs,
      maxTimeoutMs: options.maxSessionTimeoutMs ?? 20 * tickMs,
    };
    this.sessions = new SessionTable(clock, limits, (session) => this.sessionEnded(session));
  }

  /** A new client; it connects in the background. */
  connect(options: SimulatedClientOptions = {}): ZooKeeper {
    const path: Path = { connections: new Set(), partition: undefined, lagMs: 0, loss: undefined };
    const openWire: OpenWire = (_endpoint, _tls, _maxFrameBytes, handler) => this.open(path, handler);
    const client = connectThrough(openWire, {
      random: { next: () => 0.5 },
      clock: this.clock,
      ...options,
      servers: ADDRESS,
    });
    this.paths.set(client, path);
    return client;
  }

  // ---- What checkers look at

  /** Every znode by path, sorted. */
  dump(): ReadonlyMap<string, DumpedZnode> {
    return this.service.dump();
  }

  /** The newest transaction. */
  get lastZxid(): bigint {
    return this.service.lastZxid;
  }

  get liveSessions(): readonly ServerSession[] {
    return this.sessions.list();
  }

  /** Tells of every transaction that changed something, right after it was applied. Returns how to stop listening. */
  onCommit(listener: CommitListener): () => void {
    return this.service.onCommit(listener);
  }

  // ---- What goes wrong, on request

  /** Cuts the client's connection; it reconnects by itself. */
  disconnect(client: ZooKeeper): void {
    for (const connection of [...this.pathOf(client).connections]) connection.cut('the connection was cut');
  }

  /**
   * Nothing passes between the client and the server until `heal`. With `cut` the client is told of it at once, and
   * further attempts to connect fail at once; with `silent` messages are held up and it has to notice by itself.
   */
  partition(client: ZooKeeper, how: 'cut' | 'silent' = 'cut'): void {
    const path = this.pathOf(client);
    path.partition = how;
    for (const connection of [...path.connections]) {
      if (how === 'silent') connection.hold(true);
      else connection.cut('the network is partitioned');
    }
  }

  /** Ends a partition. What was held up arrives, unless one side has given the connection up. */
  heal(client: ZooKeeper): void {
    const path = this.pathOf(client);
    path.partition = undefined;
    for (const connection of [...path.connections]) connection.hold(false);
  }

  /** Expires the client's session now, as its server does when it hears nothing. */
  expireSession(client: ZooKeeper): void {
    const { session } = client;
    if (session !== undefined) this.sessions.end(session.id);
  }

  /**
   * The next write of the client that `matches` is lost together with its connection: before it was applied, or after,
   * so that only its answer is. The client cannot tell which.
   */
  loseNextWrite(client: ZooKeeper, when: PlannedLoss['when'], matches: PlannedLoss['matches'] = () => true): void {
    this.pathOf(client).loss = { when, matches };
  }

  /** Whatever the server sends to the client arrives this much later than the latency says. */
  setLag(client: ZooKeeper, ms: number): void {
    this.pathOf(client).lagMs = ms;
  }

  /** Takes the server down. No session ends while it is. */
  stop(): void {
    this.running = false;
    this.service.stop();
    this.sessions.stop();
    for (const connection of [...this.connections.keys()]) connection.cut('the server went down');
  }

  /** Brings it back; all sessions have their full timeout from now on. */
  start(): void {
    if (this.running) return;
    this.running = true;
    this.service.start();
    // Nobody can end a session alone.
    if (!this.readOnly) this.sessions.start();
  }

  /**
   * From now on it only serves reads, to clients that allow it (`readOnly`), as a server that lost the others of its
   * ensemble; or it takes writes again. Every connection is cut. Sessions that can write do not end meanwhile.
   */
  setReadOnly(readOnly: boolean): void {
    if (readOnly === this.readOnly) return;
    this.stop();
    this.readOnly = readOnly;
    if (!readOnly) this.sessions.forgetReadOnly();
    this.start();
  }

  restart(): void {
    this.stop();
    this.start();
  }

  snapshot(): ServerSnapshot {
    return { ...this.service.snapshot(), sessions: this.sessions.snapshot() };
  }

  /** Brings an older state back, as from a backup, with a restart. */
  restore(snapshot: ServerSnapshot): void {
    this.stop();
    this.service.restore(snapshot);
    this.sessions.restore(snapshot.sessions);
    this.start();
  }

  // ---- Connections

  private pathOf(client: ZooKeeper): Path {
    const path = this.paths.get(client);
    if (path !== undefined) return path;
    throw new InvalidArgumentError('invalid-argument', 'this client was not made by this simulated server');
  }

  private open(path: Path, handler: ConnectionHandler): Wire {
    if (path.partition === 'silent') return new DeadWire();
    if (path.partition === 'cut' || !this.running) return new DeadWire(handler);
    const delays: Delays = { up: this.latency, down: () => this.latency() + path.lagMs };
    const connection = new SimulatedConnection(this.clock, delays, this.serverEnd, handler);
    path.connections.add(connection);
    this.connections.set(connection, path);
    return connection;
  }

  private readonly serverEnd: ServerEnd = {
    onFrame: (connection, buffer, start, end) => {
      const reader = this.reader.reset(buffer, start, end);
      if (connection.sessionId === undefined) {
        this.greet(connection, reader);
      } else {
        const { xid, request } = readRequest(reader);
        this.serve(connection, connection.sessionId, xid, request);
      }
    },
    onDown: (connection) => {
      this.connections.get(connection)?.connections.delete(connection);
      this.connections.delete(connection);
      this.service.forgetWatches(connection);
      this.sessions.disconnected(connection);
    },
  };

  private greet(connection: SimulatedConnection, reader: JuteReader): void {
    const hello = readHello(reader);
    if (hello.lastZxid > this.service.lastZxid) {
      connection.closeByServer('the client has seen newer transactions than this server');
      return;
    }
    const { readOnly } = this;
    if (readOnly && !hello.readOnly) {
      connection.closeByServer('it only serves reads at present');
      return;
    }
    if (hello.sessionId === 0n && !readOnly) this.service.countTransaction();
    const session = this.sessions.open(hello, connection, readOnly);
    connection.reply(
      connectResponse(
        session === undefined
          ? { timeoutMs: 0, sessionId: 0n, password: NO_PASSWORD, readOnly }
          : { timeoutMs: session.timeoutMs, sessionId: session.id, password: session.password, readOnly },
      ),
    );
  }

  private serve(connection: SimulatedConnection, sessionId: bigint, xid: number, request: Request): void {
    if (!this.sessions.touch(sessionId, connection)) {
      connection.closeByServer('the session is not this connection’s');
      return;
    }
    const loss = this.takeLoss(connection, request);
    if (loss === 'before-applied') {
      connection.cut('the connection was cut');
      return;
    }
    if (request.type === 'auth' && !this.admit(connection, request)) {
      connection.reply(refusalMessage(xid, this.service.lastZxid, Refusal.authFailed));
      connection.closeAfterReplies();
      return;
    }
    const answer = this.answerTo(connection, sessionId, xid, request);
    if (loss === 'after-applied') connection.cut('the connection was cut');
    else connection.reply(answer);
    if (request.type === 'close') this.sessions.farewell(sessionId);
  }

  private admit(connection: SimulatedConnection, request: Extract<Request, { type: 'auth' }>): boolean {
    const identity = authenticate(request.scheme, request.auth);
    if (identity === undefined) return false;
    connection.identities = [...connection.identities, identity];
    return true;
  }

  private takeLoss(connection: SimulatedConnection, request: Request): PlannedLoss['when'] | undefined {
    const path = this.connections.get(connection);
    if (path?.loss === undefined || !isWrite(request) || !path.loss.matches(request)) return undefined;
    const { when } = path.loss;
    path.loss = undefined;
    return when;
  }

  private answerTo(connection: SimulatedConnection, sessionId: bigint, xid: number, request: Request): Buffer {
    let value: AnswerValue;
    try {
      if (this.readOnly && (isWrite(request) || request.type === 'sync')) throw new RefusedError(Refusal.notReadOnly);
      value = this.service.handle(connection, sessionId, connection.identities, request);
    } catch (error) {
      if (error instanceof RefusedError) return refusalMessage(xid, this.service.lastZxid, error.serverCode);
      throw error;
    }
    return answerMessage(xid, this.service.lastZxid, value);
  }

  private sessionEnded(session: SessionRecord): void {
    this.service.endSession(session.id);
    session.connection?.closeByServer('the session ended');
  }
}

const NO_PASSWORD = Buffer.alloc(16);

/** Leads nowhere: nothing is heard of it, or, with a handler, soon that nobody listens at the other end. */
class DeadWire implements Wire {
  readonly bytesSent = 0;
  readonly bytesReceived = 0;
  private destroyed = false;

  constructor(handler?: ConnectionHandler) {
    if (handler === undefined) return;
    queueMicrotask(() => {
      if (this.destroyed) return;
      handler.onEnd(new ConnectionLostError('connection-lost', 'simulated server: the connection was refused'));
    });
  }

  send(): void {
    throw new ConnectionLostError('connection-lost', 'simulated server: there is no connection to send on');
  }

  destroy(): void {
    this.destroyed = true;
  }
}
