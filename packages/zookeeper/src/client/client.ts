import type {
  Acl,
  CallOptions,
  ConnectionState,
  CreateOptions,
  Identity,
  PersistentWatch,
  ReadOp,
  ReadResult,
  Session,
  Stat,
  TransactionOp,
  TransactionResult,
  WatchKind,
  WatchListener,
  ZooKeeper,
  ZooKeeperCounters,
  ZooKeeperEvents,
} from '../api.js';
import { abortReason } from '../clock.js';
import { InvalidArgumentError, ZooKeeperError } from '../errors.js';
import { Call, type Operation } from './call.js';
import type { OpenWire } from './connection.js';
import { Emitter } from './emitter.js';
import type { Link } from './link.js';
import { Backpressure } from './backpressure.js';
import * as op from './operations.js';
import { resolveOptions, type ClientOptions, type Settings } from './options.js';
import { validatePath } from './paths.js';
import { AbortGroups, Deadlines, type Pending } from './pending.js';
import { Pipeline } from './pipeline.js';
import { Opcode } from './protocol.js';
import { readTransactionFrame, readTransactionOperation } from './read-transaction.js';
import { ServerCode } from './server-errors.js';
import { SessionManager } from './session-manager.js';
import type { ClientSession } from './session.js';
import { isSequential, transactionFrame, transactionOperation } from './transaction.js';
import { Waiters } from './waiters.js';
import { WatchSync } from './watch-sync.js';
import type { OneShotKind, OneShotListener } from './watches.js';

interface WatchOptions extends CallOptions {
  readonly watch?: OneShotListener;
}

interface VersionOptions extends CallOptions {
  readonly version?: number;
}

const ANY_VERSION = -1;

/**
 * Creates a client, which connects in the background and reconnects by itself until it is closed. Throws
 * `InvalidArgumentError` if an option is invalid.
 *
 * @example
 * const zk = connect({ servers: 'zk1:2181,zk2:2181,zk3:2181/app' });
 * zk.on('warning', (error) => console.warn(error.message));
 * await zk.connected({ timeoutMs: 10_000 });
 */
export function connect(options: ClientOptions): ZooKeeper {
  return new ZooKeeperClient(resolveOptions(options));
}

/** Creates a client over another kind of connections, such as simulated ones. */
export function connectThrough(openWire: OpenWire, options: ClientOptions): ZooKeeper {
  return new ZooKeeperClient(resolveOptions(options, openWire));
}

class ZooKeeperClient implements ZooKeeper {
  private readonly emitter = new Emitter<ZooKeeperEvents>();
  private readonly abortGroups = new AbortGroups();
  private readonly deadlines: Deadlines;
  private readonly backpressure: Backpressure;
  private readonly pipeline: Pipeline;
  private readonly sessionManager: SessionManager;
  private readonly watches: WatchSync;
  private readonly sessionWaiters: Waiters<Session>;
  private readonly drainWaiters: Waiters<void>;
  private closedBy: ZooKeeperError | undefined;
  private readonly creation: Operation<op.Created>;
  private readonly lastProblem = (): Error | undefined => this.sessionManager.lastProblem;

  constructor(private readonly settings: Settings) {
    const { clock, maxPendingCalls, maxPendingBytes, chroot } = settings;
    this.creation = op.createOperation(chroot);
    this.deadlines = new Deadlines(clock);
    this.backpressure = new Backpressure(maxPendingCalls, maxPendingBytes, () => this.drainWaiters.resolve());
    this.pipeline = new Pipeline(clock, this.backpressure);
    this.sessionWaiters = this.waiters('connected', 'no ZooKeeper server confirmed a session');
    this.drainWaiters = this.waiters('drained', 'too many calls are unanswered');
    this.watches = new WatchSync(chroot, {
      lastZxid: () => this.sessionManager.lastZxid,
      call: (operation, path, frame, options) => this.call(operation, path, () => frame, options),
      background: (operation, path, frame, onAnswer) => this.backgroundCall(operation, path, frame, onAnswer),
      warn: (error) => this.emitter.emit('warning', error),
    });
    this.sessionManager = new SessionManager(settings, {
      onUp: (link, session, fresh) => this.up(link, session, fresh),
      onDown: (error) => {
        this.watches.disconnected();
        this.pipeline.detach(error);
      },
      onDrain: (whenIdle) => this.pipeline.drain(whenIdle),
      onState: (state) => this.emitter.emit('state', state),
      onLost: (session, error) => {
        this.watches.dropOneShots();
        this.emitter.emit('lost', session, error);
      },
      onClosed: (error) => this.closed(error),
      onWarning: (error) => this.emitter.emit('warning', error),
      answers: this.pipeline,
      events: this.watches,
    });
    this.sessionManager.start();
  }

  get state(): ConnectionState {
    return this.sessionManager.state;
  }

  get session(): Session | undefined {
    return this.sessionManager.session;
  }

  get lastZxid(): bigint {
    return this.sessionManager.lastZxid;
  }

  get server(): string | undefined {
    return this.sessionManager.server;
  }

  get counters(): ZooKeeperCounters {
    const { connects, bytesSent, bytesReceived } = this.sessionManager;
    return { ...this.pipeline.counters, watchEvents: this.watches.events, bytesSent, bytesReceived, connects };
  }

  get writable(): boolean {
    return this.backpressure.belowHighWater;
  }

  on<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this {
    this.emitter.on(event, listener);
    return this;
  }

  off<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this {
    this.emitter.off(event, listener);
    return this;
  }

  async connected(options: CallOptions = {}): Promise<Session> {
    const { session } = this.sessionManager;
    const refusal = this.refusal(options.signal);
    if (refusal !== undefined) throw refusal;
    if (session?.confirmed === true) return session;
    return this.sessionWaiters.wait(this.timeoutOf(options), options.signal);
  }

  async drained(options: CallOptions = {}): Promise<void> {
    const refusal = this.refusal(options.signal);
    if (refusal !== undefined) throw refusal;
    if (!this.writable) await this.drainWaiters.wait(this.timeoutOf(options), options.signal);
  }

  create(path: string, data?: Uint8Array, options?: CreateOptions & CallOptions): Promise<op.Created> {
    const frame = (): Buffer =>
      op.createFrame(this.serverPath('create', path, isSequential(options?.mode)), data, options);
    return this.call(this.creation, path, frame, options);
  }

  delete(path: string, options?: VersionOptions): Promise<void> {
    const frame = (): Buffer => op.deleteFrame(this.serverPath('delete', path), options?.version ?? ANY_VERSION);
    return this.call(op.DELETE, path, frame, options);
  }

  exists(path: string, options?: WatchOptions): Promise<Stat | undefined> {
    return this.watchableCall(op.EXISTS, Opcode.exists, 'data', path, options);
  }

  get(path: string, options?: WatchOptions): Promise<{ data: Uint8Array; stat: Stat }> {
    return this.watchableCall(op.GET, Opcode.getData, 'data', path, options);
  }

  set(path: string, data: Uint8Array, options?: VersionOptions): Promise<Stat> {
    const frame = (): Buffer => op.setFrame(this.serverPath('set', path), data, options?.version ?? ANY_VERSION);
    return this.call(op.SET, path, frame, options);
  }

  children(path: string, options?: WatchOptions): Promise<{ children: readonly string[]; stat: Stat }> {
    return this.watchableCall(op.CHILDREN, Opcode.getChildren2, 'child', path, options);
  }

  sync(path: string, options?: CallOptions): Promise<void> {
    return this.call(op.SYNC, path, () => op.pathFrame(Opcode.sync, this.serverPath('sync', path)), options);
  }

  transaction(ops: readonly TransactionOp[], options?: CallOptions): Promise<readonly TransactionResult[]> {
    const { chroot } = this.settings;
    // Without `call`, which needs a closure, because most requests of a busy client are transactions.
    return new Promise((resolve, reject) => {
      const frame = transactionFrame(ops, chroot);
      this.submit(transactionOperation(ops, chroot), undefined, frame, options, resolve, reject);
    });
  }

  getAcl(path: string, options?: CallOptions): Promise<{ acl: readonly Acl[]; stat: Stat }> {
    return this.call(op.GET_ACL, path, () => op.pathFrame(Opcode.getAcl, this.serverPath('getAcl', path)), options);
  }

  setAcl(path: string, acl: readonly Acl[], options?: VersionOptions): Promise<Stat> {
    const frame = (): Buffer => op.setAclFrame(this.serverPath('setAcl', path), acl, options?.version ?? ANY_VERSION);
    return this.call(op.SET_ACL, path, frame, options);
  }

  readTransaction(ops: readonly ReadOp[], options?: CallOptions): Promise<readonly ReadResult[]> {
    const frame = (): Buffer => readTransactionFrame(ops, this.settings.chroot);
    return this.call(readTransactionOperation(ops), undefined, frame, options);
  }

  countDescendants(path: string, options?: CallOptions): Promise<number> {
    const frame = (): Buffer => op.pathFrame(Opcode.getAllChildrenNumber, this.serverPath('countDescendants', path));
    return this.call(op.COUNT_DESCENDANTS, path, frame, options);
  }

  ephemerals(prefix = '/', options?: CallOptions): Promise<readonly string[]> {
    const frame = (): Buffer => op.pathFrame(Opcode.getEphemerals, this.serverPath('ephemerals', prefix));
    return this.call(op.ephemeralsOperation(this.settings.chroot), prefix, frame, options);
  }

  whoAmI(options?: CallOptions): Promise<readonly Identity[]> {
    return this.call(op.WHO_AM_I, undefined, () => op.emptyFrame(Opcode.whoAmI), options);
  }

  addAuth(scheme: string, auth: string | Uint8Array, options?: CallOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      const frame = op.authFrame(scheme, Buffer.from(auth));
      const refusal = this.refusal(options?.signal) ?? this.tooLarge(op.AUTH.name, undefined, frame);
      if (refusal !== undefined) {
        reject(refusal);
        return;
      }
      const timeoutMs = this.timeoutOf(options);
      const call = new Call(op.AUTH, undefined, frame, timeoutMs, this.lastProblem, undefined, resolve, reject);
      this.limit(call, timeoutMs, options?.signal);
      this.sessionManager.addAuth(call);
    });
  }

  updateServers(servers: string | readonly string[]): void {
    this.sessionManager.updateServers(this.settings.parseServers(servers));
  }

  async removeWatches(
    path: string,
    options?: { readonly kind?: WatchKind; readonly listener?: OneShotListener } & CallOptions,
  ): Promise<void> {
    validatePath(path, 'removeWatches');
    const refusal = this.refusal(options?.signal);
    if (refusal !== undefined) throw refusal;
    return this.watches.removeOneShots(path, options?.kind ?? 'any', options?.listener, options);
  }

  watch(path: string, mode: PersistentWatch['mode'], listener: WatchListener): PersistentWatch {
    validatePath(path, 'watch');
    return this.watches.addPersistent(path, mode, listener);
  }

  close(): Promise<void> {
    return this.sessionManager.close();
  }

  private serverPath(operation: string, path: string, sequential = false): string {
    validatePath(path, operation, sequential);
    return this.settings.chroot.toServer(path);
  }

  private timeoutOf(options: CallOptions | undefined): number {
    return options?.timeoutMs ?? this.settings.operationTimeoutMs;
  }

  /** Returns the error of a call that is issued now, if the client is closed or the signal has aborted. */
  private refusal(signal: AbortSignal | undefined): ZooKeeperError | undefined {
    if (this.closedBy !== undefined) return this.closedBy;
    if (signal?.aborted !== true) return undefined;
    const reason = abortReason(signal);
    if (reason instanceof ZooKeeperError) return reason;
    return new ZooKeeperError('aborted', `not started: ${reason.message}`, { cause: reason });
  }

  private watchableCall<T>(
    operation: Operation<T>,
    opcode: number,
    kind: OneShotKind,
    path: string,
    options: WatchOptions | undefined,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const serverPath = this.serverPath(operation.name, path);
      const listener = options?.watch;
      if (listener === undefined) {
        const frame = op.watchableFrame(opcode, serverPath, false);
        this.submit(operation, path, frame, options, resolve, reject);
        return;
      }
      const read = this.watches.watchingRead(path, listener);
      const onSettled = (code: number | undefined): void => {
        if (code === ServerCode.ok) read.done(kind);
        else if (code === ServerCode.noNode && operation.mayBeAbsent === true) read.done('exist');
        else read.done(undefined);
      };
      const frame = op.watchableFrame(opcode, serverPath, read.askServer);
      this.submit(operation, path, frame, options, resolve, reject, onSettled);
    });
  }

  /** Rejects with the error of `frame`, if it throws one. */
  private call<T>(
    operation: Operation<T>,
    path: string | undefined,
    frame: () => Buffer,
    options: CallOptions | undefined,
  ): Promise<T> {
    return new Promise((resolve, reject) => this.submit(operation, path, frame(), options, resolve, reject));
  }

  /** Issues a call. Calls `resolve` or `reject` once. */
  private submit<T>(
    operation: Operation<T>,
    path: string | undefined,
    frame: Buffer,
    options: CallOptions | undefined,
    resolve: (value: T) => void,
    reject: (error: Error) => void,
    onSettled?: (code: number | undefined) => void,
  ): void {
    const refusal =
      this.refusal(options?.signal) ??
      this.tooLarge(operation.name, path, frame) ??
      this.backpressure.refusal(frame.length, operation.name, path);
    if (refusal !== undefined) {
      onSettled?.(undefined);
      reject(refusal);
      return;
    }
    const timeoutMs = this.timeoutOf(options);
    const call = new Call(operation, path, frame, timeoutMs, this.lastProblem, this.backpressure, resolve, reject);
    call.onSettled = onSettled;
    this.limit(call, timeoutMs, options?.signal);
    this.pipeline.submit(call);
  }

  private limit(call: Pending, timeoutMs: number, signal: AbortSignal | undefined): void {
    this.deadlines.add(call, timeoutMs);
    if (signal !== undefined) this.abortGroups.add(call, signal);
  }

  /** Issues a request without a deadline; it fails with its connection. */
  private backgroundCall(
    operation: Operation<void>,
    path: string,
    frame: Buffer,
    onAnswer: (error?: Error) => void,
  ): void {
    const onSuccess = (): void => onAnswer();
    this.pipeline.submit(
      new Call(operation, path, frame, Infinity, this.lastProblem, this.backpressure, onSuccess, onAnswer),
    );
  }

  private tooLarge(name: string, path: string | undefined, frame: Buffer): InvalidArgumentError | undefined {
    const { maxPacketBytes } = this.settings;
    // The limit does not count the length field of the message.
    const size = frame.length - 4;
    if (size <= maxPacketBytes) return undefined;
    const message =
      `${name} ${path ?? ''}: the request has ${size} bytes, but the servers accept ${maxPacketBytes}; ` +
      'store less, or raise jute.maxbuffer of all servers and maxPacketBytes';
    return new InvalidArgumentError('invalid-argument', message, { operation: name, path });
  }

  private up(link: Link, session: ClientSession, fresh: boolean): void {
    this.watches.connected(link);
    this.pipeline.attach(link, session.timeoutMs);
    this.emitter.emit('state', 'connected');
    this.emitter.emit(fresh ? 'session' : 'resumed', session);
    this.sessionWaiters.resolve(session);
  }

  private closed(error: ZooKeeperError): void {
    this.closedBy = error;
    this.watches.disconnected();
    this.sessionWaiters.fail(error);
    this.drainWaiters.fail(error);
    this.pipeline.fail(error);
    this.deadlines.clear();
    this.watches.dropOneShots();
  }

  private waiters<T>(operation: string, timeoutMessage: string): Waiters<T> {
    return new Waiters({ operation, timeoutMessage }, this.lastProblem, this.deadlines, this.abortGroups);
  }
}
