/** The client that talks to real servers. */

import type {
  Acl,
  CallOptions,
  ConnectionState,
  CreateOptions,
  PersistentWatch,
  Session,
  Stat,
  TransactionOp,
  TransactionResult,
  WatchEvent,
  WatchListener,
  ZooKeeper,
  ZooKeeperCounters,
  ZooKeeperEvents,
} from '../api.js';
import { abortReason } from '../clock.js';
import { InvalidArgumentError, ZooKeeperError } from '../errors.js';
import { Call, type Operation } from './call.js';
import { ConnectedWaiter } from './connected-waiter.js';
import type { OpenWire } from './connection.js';
import { Emitter } from './emitter.js';
import { Fifo } from './fifo.js';
import type { Link } from './link.js';
import * as op from './operations.js';
import { resolveOptions, type ClientOptions, type Settings } from './options.js';
import { validatePath } from './paths.js';
import { AbortGroups, Deadlines } from './pending.js';
import { Pipeline } from './pipeline.js';
import { Opcode } from './protocol.js';
import { serverError, ServerCode } from './server-errors.js';
import { SessionKeeper } from './session-keeper.js';
import type { ClientSession } from './session.js';
import { isSequential, transactionFrame, transactionOperation } from './transaction.js';
import { WatchRegistry, type OneShotKind, type OneShotListener, type Registration } from './watches.js';

interface WatchOptions extends CallOptions {
  readonly watch?: OneShotListener;
}

interface VersionOptions extends CallOptions {
  readonly version?: number;
}

const ANY_VERSION = -1;

/** Returns at once and connects in the background. Throws `InvalidArgumentError` when an option is wrong. */
export function connect(options: ClientOptions): ZooKeeper {
  return new ZooKeeperClient(resolveOptions(options));
}

/** As `connect`, over connections of another kind, such as simulated ones. */
export function connectThrough(openWire: OpenWire, options: ClientOptions): ZooKeeper {
  return new ZooKeeperClient(resolveOptions(options, openWire));
}

class ZooKeeperClient implements ZooKeeper {
  private readonly emitter = new Emitter<ZooKeeperEvents>();
  private readonly deadlines: Deadlines;
  private readonly abortGroups = new AbortGroups();
  private readonly pipeline: Pipeline;
  private readonly keeper: SessionKeeper;
  private readonly watches: WatchRegistry;
  private readonly waiters = new Set<ConnectedWaiter>();
  /** What each `setWatches` that was not answered yet sets, in their order. */
  private settingWatches = new Fifo<readonly Registration[]>();
  private watchEvents = 0;
  private closedBy: ZooKeeperError | undefined;
  private readonly lastProblem = (): Error | undefined => this.keeper.lastProblem;

  constructor(private readonly settings: Settings) {
    this.deadlines = new Deadlines(settings.clock);
    this.pipeline = new Pipeline(settings.clock);
    this.watches = new WatchRegistry({
      addWatch: (path, mode, registration) => this.addWatch(path, mode, registration),
      removeWatches: (path) => this.removeWatches(path),
    });
    this.keeper = new SessionKeeper(settings, {
      onUp: (link, session, fresh) => this.up(link, session, fresh),
      onDown: (error) => {
        this.watches.disconnected();
        this.pipeline.detach(error);
      },
      onState: (state) => this.emitter.emit('state', state),
      onLost: (session, error) => {
        this.watches.dropOneShots();
        this.emitter.emit('lost', session, error);
      },
      onClosed: (error) => this.closed(error),
      onWarning: (error) => this.emitter.emit('warning', error),
      onAnswer: (xid, code, reader) => this.pipeline.answer(xid, code, reader),
      onEvent: (event) => this.told(event),
      onWatchesSet: (code) => this.watchesSet(code),
    });
    this.keeper.start();
  }

  get state(): ConnectionState {
    return this.keeper.state;
  }

  get session(): Session | undefined {
    return this.keeper.session;
  }

  get counters(): ZooKeeperCounters {
    const { connects, bytesSent, bytesReceived } = this.keeper;
    return { ...this.pipeline.counters, watchEvents: this.watchEvents, bytesSent, bytesReceived, connects };
  }

  on<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this {
    this.emitter.on(event, listener);
    return this;
  }

  off<E extends keyof ZooKeeperEvents>(event: E, listener: (...args: ZooKeeperEvents[E]) => void): this {
    this.emitter.off(event, listener);
    return this;
  }

  connected(options: CallOptions = {}): Promise<Session> {
    return new Promise((resolve, reject) => {
      const { session } = this.keeper;
      const refusal = this.refusal(options.signal);
      if (refusal !== undefined) {
        reject(refusal);
      } else if (session?.confirmed === true) {
        resolve(session);
      } else {
        const timeoutMs = this.timeoutOf(options);
        const waiter = new ConnectedWaiter(timeoutMs, this.lastProblem, this.waiters, resolve, reject);
        this.deadlines.add(waiter, timeoutMs);
        if (options.signal !== undefined) this.abortGroups.add(waiter, options.signal);
      }
    });
  }

  async create(path: string, data?: Uint8Array, options?: CreateOptions & CallOptions): Promise<op.Created> {
    const serverPath = this.serverPath('create', path, isSequential(options?.mode));
    const created = await this.call(op.CREATE, path, op.createFrame(serverPath, data, options), options);
    return { path: this.settings.chroot.toClient(created.path) ?? created.path, stat: created.stat };
  }

  async delete(path: string, options?: VersionOptions): Promise<void> {
    const frame = op.deleteFrame(this.serverPath('delete', path), options?.version ?? ANY_VERSION);
    return this.call(op.DELETE, path, frame, options);
  }

  async exists(path: string, options?: WatchOptions): Promise<Stat | undefined> {
    return this.watchableCall(op.EXISTS, Opcode.exists, 'data', path, options);
  }

  async get(path: string, options?: WatchOptions): Promise<{ data: Uint8Array; stat: Stat }> {
    return this.watchableCall(op.GET, Opcode.getData, 'data', path, options);
  }

  async set(path: string, data: Uint8Array, options?: VersionOptions): Promise<Stat> {
    const frame = op.setFrame(this.serverPath('set', path), data, options?.version ?? ANY_VERSION);
    return this.call(op.SET, path, frame, options);
  }

  async children(path: string, options?: WatchOptions): Promise<{ children: readonly string[]; stat: Stat }> {
    return this.watchableCall(op.CHILDREN, Opcode.getChildren2, 'child', path, options);
  }

  async sync(path: string, options?: CallOptions): Promise<void> {
    return this.call(op.SYNC, path, op.pathFrame(Opcode.sync, this.serverPath('sync', path)), options);
  }

  async transaction(ops: readonly TransactionOp[], options?: CallOptions): Promise<readonly TransactionResult[]> {
    const { chroot } = this.settings;
    return this.call(transactionOperation(ops, chroot), undefined, transactionFrame(ops, chroot), options);
  }

  async getAcl(path: string, options?: CallOptions): Promise<{ acl: readonly Acl[]; stat: Stat }> {
    return this.call(op.GET_ACL, path, op.pathFrame(Opcode.getAcl, this.serverPath('getAcl', path)), options);
  }

  async setAcl(path: string, acl: readonly Acl[], options?: VersionOptions): Promise<Stat> {
    const frame = op.setAclFrame(this.serverPath('setAcl', path), acl, options?.version ?? ANY_VERSION);
    return this.call(op.SET_ACL, path, frame, options);
  }

  watch(path: string, mode: PersistentWatch['mode'], listener: WatchListener): PersistentWatch {
    validatePath(path, 'watch');
    return this.watches.addPersistent(path, mode, listener);
  }

  close(): Promise<void> {
    return this.keeper.close();
  }

  private serverPath(operation: string, path: string, sequential = false): string {
    validatePath(path, operation, sequential);
    return this.settings.chroot.toServer(path);
  }

  private timeoutOf(options: CallOptions | undefined): number {
    return options?.timeoutMs ?? this.settings.operationTimeoutMs;
  }

  /** Why nothing can be asked now, if so. */
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
    const serverPath = this.serverPath(operation.name, path);
    const listener = options?.watch;
    if (listener === undefined)
      return this.call(operation, path, op.watchableFrame(opcode, serverPath, false), options);
    const unpin = this.watches.pin(path);
    const onSettled = (code: number | undefined): void => {
      if (code === ServerCode.ok) this.watches.addOneShot(kind, path, listener);
      else if (code === ServerCode.noNode && operation.mayBeAbsent === true)
        this.watches.addOneShot('exist', path, listener);
      unpin?.();
    };
    const frame = op.watchableFrame(opcode, serverPath, unpin === undefined);
    return this.call(operation, path, frame, options, onSettled);
  }

  private call<T>(
    operation: Operation<T>,
    path: string | undefined,
    frame: Buffer,
    options: CallOptions | undefined,
    onSettled?: (code: number | undefined) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const refusal = this.refusal(options?.signal) ?? this.tooLarge(operation.name, path, frame);
      if (refusal !== undefined) {
        onSettled?.(undefined);
        reject(refusal);
        return;
      }
      const timeoutMs = this.timeoutOf(options);
      const call = new Call(operation, path, frame, timeoutMs, this.lastProblem, resolve, reject);
      call.onSettled = onSettled;
      this.deadlines.add(call, timeoutMs);
      if (options?.signal !== undefined) this.abortGroups.add(call, options.signal);
      this.pipeline.submit(call);
    });
  }

  /** A request whose deadline is that of the connection. */
  private backgroundCall(
    operation: Operation<void>,
    path: string,
    frame: Buffer,
    onAnswer: (error: Error | undefined) => void,
  ): void {
    const onSuccess = (): void => onAnswer(undefined);
    this.pipeline.submit(new Call(operation, path, frame, Infinity, this.lastProblem, onSuccess, onAnswer));
  }

  private tooLarge(name: string, path: string | undefined, frame: Buffer): InvalidArgumentError | undefined {
    const { maxPacketBytes } = this.settings;
    // The limit is on the message without its length.
    const size = frame.length - 4;
    if (size <= maxPacketBytes) return undefined;
    const message =
      `${name} ${path ?? ''}: the request has ${size} bytes, but the servers accept ${maxPacketBytes}; ` +
      'store less, or raise jute.maxbuffer of all servers and maxPacketBytes';
    return new InvalidArgumentError('invalid-argument', message, { operation: name, path });
  }

  private up(link: Link, session: ClientSession, fresh: boolean): void {
    this.settingWatches = new Fifo();
    for (const { paths, registrations } of this.watches.connect()) {
      this.settingWatches.push(registrations);
      link.send(op.setWatchesFrame(this.keeper.lastZxid, this.onServer(paths)));
    }
    this.pipeline.attach(link);
    this.emitter.emit('state', 'connected');
    this.emitter.emit(fresh ? 'session' : 'resumed', session);
    for (const waiter of [...this.waiters]) waiter.connected(session);
  }

  private onServer(paths: op.WatchPaths): op.WatchPaths {
    const toServer = (path: string): string => this.settings.chroot.toServer(path);
    return {
      data: paths.data.map(toServer),
      exist: paths.exist.map(toServer),
      child: paths.child.map(toServer),
      persistent: paths.persistent.map(toServer),
      recursive: paths.recursive.map(toServer),
    };
  }

  private watchesSet(code: number): void {
    const registrations = this.settingWatches.shift() ?? [];
    if (code === ServerCode.ok) this.watches.wasSet(registrations);
    else this.emitter.emit('warning', serverError(code, { operation: 'setWatches' }));
  }

  private told(event: WatchEvent): void {
    this.watchEvents++;
    const path = this.settings.chroot.toClient(event.path);
    if (path !== undefined) this.watches.dispatch({ type: event.type, path });
  }

  private addWatch(path: string, mode: PersistentWatch['mode'], registration: Registration): void {
    const frame = op.addWatchFrame(this.settings.chroot.toServer(path), mode);
    this.backgroundCall(op.ADD_WATCH, path, frame, (error) => {
      if (error === undefined) this.watches.wasSet([registration]);
      else this.warnUnlessDisconnected(error);
    });
  }

  private removeWatches(path: string): void {
    const frame = op.removeWatchesFrame(this.settings.chroot.toServer(path));
    this.backgroundCall(op.REMOVE_WATCHES, path, frame, (error) => {
      if (error !== undefined) this.warnUnlessDisconnected(error);
    });
  }

  /** The next connection sets the watches that there are then: the loss of this one is no problem. */
  private warnUnlessDisconnected(error: Error): void {
    const expected = error instanceof ZooKeeperError && (error.code === 'connection-lost' || error.code === 'closed');
    if (!expected) this.emitter.emit('warning', error);
  }

  private closed(error: ZooKeeperError): void {
    this.closedBy = error;
    this.watches.disconnected();
    this.pipeline.fail(error);
    for (const waiter of [...this.waiters]) waiter.fail(error);
    this.deadlines.clear();
    this.watches.dropOneShots();
  }
}
