/**
 * A ZooKeeper server in memory, for simulations and tests. It follows the rules of ZooKeeper 3.8 for znodes, sessions
 * and watches, and injects faults on request. Its clients are the real client over simulated connections.
 */

import type { ZooKeeper } from '../api.js';
import type { Clock } from '../clock.js';
import { connectThrough } from '../client/client.js';
import type { ConnectionHandler, OpenWire, Wire } from '../client/connection.js';
import type { ClientOptions } from '../client/options.js';
import { JuteReader } from '../client/jute-reader.js';
import { InvalidArgumentError } from '../errors.js';
import { authenticate } from './access.js';
import { SimulatedConnection, type Delays, type ServerEnd } from './connection.js';
import { DeadWire } from './dead-wire.js';
import { isWrite, Refusal, RefusedError, type AnswerValue, type Request } from './messages.js';
import { ZnodeService, type CommitListener, type DataSnapshot } from './service.js';
import { SessionTable, type ServerSession, type SessionRecord } from './session-table.js';
import { answerMessage, connectResponse, readConnectRequest, readRequest, refusalMessage } from './wire.js';
import type { DumpedZnode } from './znode-tree.js';

export interface SimulatedServerOptions {
  readonly clock: Clock;
  /** Transit time of a message, milliseconds; a function is called for each message. Default 0. */
  readonly latencyMs?: number | (() => number);
  /** Tick, milliseconds. Sessions expire at full ticks, after 2 to 20, as in a real server. Default 2000. */
  readonly tickMs?: number;
  /** Enables TTL znodes (`zookeeper.extendedTypesEnabled`). Default false. */
  readonly ttlNodes?: boolean;
}

/** Options of a client of the simulated server; see `ClientOptions`. */
export interface SimulatedClientOptions extends Omit<ClientOptions, 'servers' | 'tls' | 'clock' | 'random'> {
  /** Must exist before a znode is created below it. */
  readonly chroot?: string;
  /** Clock of the client's process; see `PausableClock`. Default: the server's clock. */
  readonly clock?: Clock;
  /** Default: always 0.5. */
  readonly random?: { next(): number };
}

/** A state for `restore`. */
export interface ServerSnapshot extends DataSnapshot {
  readonly sessions: readonly Pick<SessionRecord, 'id' | 'password' | 'timeoutMs'>[];
}

interface PlannedLoss {
  readonly when: 'before-applied' | 'after-applied';
  readonly matches: (request: Request) => boolean;
}

/** The network between one client and the server. */
interface Path {
  /** Usually one; more while the client closes an expired session or searches for a read-write server. */
  readonly connections: Set<SimulatedConnection>;
  partition: 'cut' | 'silent' | undefined;
  lagMs: number;
  loss: PlannedLoss | undefined;
}

/** A placeholder: the simulated wire ignores the address. */
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
      minTimeoutMs: 2 * tickMs,
      maxTimeoutMs: 20 * tickMs,
    };
    this.sessions = new SessionTable(clock, limits, (session) => this.sessionEnded(session));
  }

  /** Creates a client, which connects in the background. */
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

  // ---- State, for checkers

  /** Returns every znode by path, sorted. */
  dump(): ReadonlyMap<string, DumpedZnode> {
    return this.service.dump();
  }

  /** Id of the newest transaction. */
  get lastZxid(): bigint {
    return this.service.lastZxid;
  }

  get liveSessions(): readonly ServerSession[] {
    return this.sessions.list();
  }

  /** Calls `listener` after every transaction with a change. Returns a function that removes it. */
  onCommit(listener: CommitListener): () => void {
    return this.service.onCommit(listener);
  }

  // ---- Faults

  /** Cuts the client's connection. The client reconnects. */
  disconnect(client: ZooKeeper): void {
    for (const connection of [...this.pathOf(client).connections]) connection.cut('the connection was cut');
  }

  /**
   * Blocks all messages between the client and the server until `heal`. With `cut`, connections and connection attempts
   * fail at once. With `silent`, messages are delayed and the client must detect the partition.
   */
  partition(client: ZooKeeper, how: 'cut' | 'silent' = 'cut'): void {
    const path = this.pathOf(client);
    path.partition = how;
    for (const connection of [...path.connections]) {
      if (how === 'silent') connection.hold(true);
      else connection.cut('the network is partitioned');
    }
  }

  /** Ends a partition. Delayed messages arrive, unless one side has closed the connection. */
  heal(client: ZooKeeper): void {
    const path = this.pathOf(client);
    path.partition = undefined;
    for (const connection of [...path.connections]) connection.hold(false);
  }

  /** Expires the client's session now, as a server does after the timeout. */
  expireSession(client: ZooKeeper): void {
    const { session } = client;
    if (session !== undefined) this.sessions.end(session.id);
  }

  /** Cuts the connection at the client's next write that `matches`, before or after its effect; both look alike. */
  loseNextWrite(client: ZooKeeper, when: PlannedLoss['when'], matches: PlannedLoss['matches'] = () => true): void {
    this.pathOf(client).loss = { when, matches };
  }

  /** Delays messages to the client by `ms` in addition to the latency. */
  setLag(client: ZooKeeper, ms: number): void {
    this.pathOf(client).lagMs = ms;
  }

  /** Stops the server. No session expires while it is stopped. */
  stop(): void {
    this.running = false;
    this.service.stop();
    this.sessions.stop();
    for (const connection of [...this.connections.keys()]) connection.cut('the server went down');
  }

  /** Starts the server again, with the full timeout for all sessions. */
  start(): void {
    if (this.running) return;
    this.running = true;
    this.service.start();
    // A server without a quorum expires no sessions.
    if (!this.readOnly) this.sessions.start();
  }

  /**
   * Switches to read-only mode, as a server that has lost its quorum, or back. Cuts every connection. A read-only
   * server accepts clients with the option `readOnly`, and expires no read-write session.
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

  /** Restores an older state, as from a backup, and restarts the server. */
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
    throw new InvalidArgumentError('invalid-argument', 'the client does not belong to this simulated server');
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
        this.openSession(connection, reader);
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

  private openSession(connection: SimulatedConnection, reader: JuteReader): void {
    const request = readConnectRequest(reader);
    if (request.lastZxid > this.service.lastZxid) {
      connection.closeByServer('the client has seen newer transactions than this server');
      return;
    }
    const { readOnly } = this;
    if (readOnly && !request.readOnly) {
      connection.closeByServer('it currently only serves reads');
      return;
    }
    if (request.sessionId === 0n && !readOnly) this.service.countTransaction();
    const session = this.sessions.open(request, connection, readOnly);
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
    if (request.type === 'auth' && !this.authenticateClient(connection, request)) {
      connection.reply(refusalMessage(xid, this.service.lastZxid, Refusal.authFailed));
      connection.closeAfterReplies();
      return;
    }
    const answer = this.answerTo(connection, sessionId, xid, request);
    if (loss === 'after-applied') connection.cut('the connection was cut');
    else connection.reply(answer);
    if (request.type === 'close') this.sessions.close(sessionId);
  }

  private authenticateClient(connection: SimulatedConnection, request: Extract<Request, { type: 'auth' }>): boolean {
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
