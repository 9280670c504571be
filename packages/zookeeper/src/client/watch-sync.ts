/** Keeps what is watched at the server in step with the registry of watches: when a connection begins, and on request. */

import type { CallOptions, PersistentWatch, WatchEvent, WatchKind, WatchListener } from '../api.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import type { Operation } from './call.js';
import { Fifo } from './fifo.js';
import * as op from './operations.js';
import type { Chroot } from './paths.js';
import type { FrameSink } from './pipeline.js';
import { serverError, ServerCode } from './server-errors.js';
import {
  WatchRegistry,
  type OneShotKind,
  type OneShotListener,
  type Registration,
  type WatchingRead,
  type WatchPort,
} from './watches.js';

/** How it talks to the server. */
export interface WatchSyncPort {
  /** The newest transaction that the server told of. */
  lastZxid(): bigint;
  call(operation: Operation<void>, path: string, frame: Buffer, options: CallOptions | undefined): Promise<void>;
  /** A request whose only deadline is the end of the connection. `onAnswer` is called in the order of what arrives. */
  background(operation: Operation<void>, path: string, frame: Buffer, onAnswer: (error?: Error) => void): void;
  warn(error: Error): void;
}

const NO_PATHS: op.WatchPaths = { data: [], exist: [], child: [], persistent: [], recursive: [] };

export class WatchSync implements WatchPort {
  private readonly registry = new WatchRegistry(this);
  private sink: FrameSink | undefined;
  /** What each `setWatches` that was not answered yet sets, in their order. */
  private setting = new Fifo<readonly Registration[]>();
  /** Events that the server told of. */
  events = 0;

  constructor(
    private readonly chroot: Chroot,
    private readonly port: WatchSyncPort,
  ) {}

  // ---- For the client

  /** A read begins that leaves a one-shot watch. */
  watchingRead(path: string, listener: OneShotListener): WatchingRead {
    return this.registry.watchingRead(path, listener);
  }

  addPersistent(path: string, mode: PersistentWatch['mode'], listener: WatchListener): PersistentWatch {
    return this.registry.addPersistent(path, mode, listener);
  }

  /** See `ZooKeeper.removeWatches`. */
  async removeOneShots(
    path: string,
    kind: WatchKind,
    listener: OneShotListener | undefined,
    options: CallOptions | undefined,
  ): Promise<void> {
    const atServer = this.registry.removeOneShots(path, kind, listener);
    if (atServer === 'none') {
      throw serverError(ServerCode.noWatcher, { operation: op.REMOVE_WATCHES.name, path });
    }
    if (atServer === undefined) return;
    const frame = op.removeWatchesFrame(this.chroot.toServer(path), atServer);
    try {
      await this.port.call(op.REMOVE_WATCHES, path, frame, options);
    } catch (error) {
      // It was told in this moment, or went with its connection: there is none any more, as was asked for.
      const gone = error instanceof ZooKeeperError && (error.code === 'no-watcher' || error.code === 'connection-lost');
      if (!gone) throw error;
    }
  }

  /** There is a connection: everything is set on it before anything else is sent. */
  connected(sink: FrameSink): void {
    this.sink = sink;
    this.setting = new Fifo();
    for (const { paths, registrations } of this.registry.connect()) this.set(sink, paths, registrations);
  }

  disconnected(): void {
    this.sink = undefined;
    this.registry.disconnected();
  }

  dropOneShots(): void {
    this.registry.dropOneShots();
  }

  /** An event of the server. */
  told(event: WatchEvent): void {
    this.events++;
    const path = this.chroot.toClient(event.path);
    if (path !== undefined) this.registry.dispatch({ type: event.type, path });
  }

  /**
   * The oldest `setWatches` was answered. Throws `ConnectionLostError` when the connection is of no use, because the
   * server is too old for persistent watches: they are given up, and the others must be set on another connection.
   */
  wasSet(code: number): void {
    const registrations = this.setting.shift() ?? [];
    if (code === ServerCode.ok) {
      this.registry.wasSet(registrations);
      return;
    }
    const error = serverError(code, { operation: 'setWatches' });
    if (error.code !== 'unimplemented' || registrations.length === 0) {
      this.port.warn(error);
      return;
    }
    this.registry.refused(registrations, tooOld(error, undefined));
    const message = 'the server does not know persistent watches; connecting anew without them';
    throw new ConnectionLostError('connection-lost', message, { cause: error });
  }

  // ---- For the registry

  addWatch(path: string, mode: PersistentWatch['mode'], registration: Registration): void {
    const frame = op.addWatchFrame(this.chroot.toServer(path), mode);
    this.port.background(op.ADD_WATCH, path, frame, (error) => {
      if (error === undefined) this.registry.wasSet([registration]);
      else if (error instanceof ZooKeeperError && !isConnectionOver(error)) {
        this.registry.refused([registration], error.code === 'unimplemented' ? tooOld(error, path) : error);
      }
    });
  }

  removeWatches(path: string): void {
    const frame = op.removeWatchesFrame(this.chroot.toServer(path), 'any');
    this.port.background(op.REMOVE_WATCHES, path, frame, (error) => {
      if (error instanceof ZooKeeperError && !isConnectionOver(error)) this.port.warn(error);
    });
  }

  setOneShot(kind: OneShotKind, path: string): void {
    if (this.sink !== undefined) this.set(this.sink, { ...NO_PATHS, [kind]: [path] }, []);
  }

  warn(error: ZooKeeperError): void {
    this.port.warn(error);
  }

  private set(sink: FrameSink, paths: op.WatchPaths, registrations: readonly Registration[]): void {
    this.setting.push(registrations);
    sink.send(op.setWatchesFrame(this.port.lastZxid(), this.onServer(paths)));
  }

  private onServer(paths: op.WatchPaths): op.WatchPaths {
    const toServer = (path: string): string => this.chroot.toServer(path);
    return {
      data: paths.data.map(toServer),
      exist: paths.exist.map(toServer),
      child: paths.child.map(toServer),
      persistent: paths.persistent.map(toServer),
      recursive: paths.recursive.map(toServer),
    };
  }
}

/** The next connection sets the watches that there are then: the loss of this one is no problem. */
function isConnectionOver({ code }: ZooKeeperError): boolean {
  return code === 'connection-lost' || code === 'closed';
}

function tooOld(cause: ZooKeeperError, path: string | undefined): ZooKeeperError {
  const place = path === undefined ? '' : ` ${path}`;
  const message = `watch${place}: this server does not know persistent watches: ZooKeeper 3.6 or newer is needed`;
  const { serverCode } = cause;
  return new ZooKeeperError('unimplemented', message, { operation: 'addWatch', path, serverCode, cause });
}
