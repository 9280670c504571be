/** Sets the watches of the registry at the server: on each new connection, and on request. */

import type { CallOptions, PersistentWatch, WatchEvent, WatchKind, WatchListener } from '../api.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import type { Operation } from './call.js';
import { Fifo } from './fifo.js';
import * as op from './operations.js';
import type { Chroot } from './paths.js';
import type { FrameSink } from './pipeline.js';
import { serverError, ServerCode } from './server-errors.js';
import type { OneShotKind, OneShotListener, Registration, WatchingRead, WatchPort } from './watches.js';
import { WatchRegistry } from './watches.js';

export interface WatchSyncPort {
  /** Returns the newest transaction that the client has seen. */
  lastZxid(): bigint;
  call(operation: Operation<void>, path: string, frame: Buffer, options: CallOptions | undefined): Promise<void>;
  /** Issues a request without a timeout; it fails with its connection. Calls `onAnswer` in the order of arrival. */
  background(operation: Operation<void>, path: string, frame: Buffer, onAnswer: (error?: Error) => void): void;
  warn(error: Error): void;
}

const NO_PATHS: op.WatchPaths = { data: [], exist: [], child: [], persistent: [], recursive: [] };

export class WatchSync implements WatchPort {
  private readonly registry = new WatchRegistry(this);
  private sink: FrameSink | undefined;
  /** Registrations of each unanswered `setWatches`, in order. */
  private unanswered = new Fifo<readonly Registration[]>();
  events = 0;

  constructor(
    private readonly chroot: Chroot,
    private readonly port: WatchSyncPort,
  ) {}

  // ---- For the client

  /** Starts a read that sets a one-shot watch. */
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
      // The watch fired meanwhile or ended with its connection, so it is removed already.
      const removed =
        error instanceof ZooKeeperError && (error.code === 'no-watcher' || error.code === 'connection-lost');
      if (!removed) throw error;
    }
  }

  /** Sets all watches on a new connection. Call it before any other request is sent. */
  connected(sink: FrameSink): void {
    this.sink = sink;
    this.unanswered = new Fifo();
    for (const { paths, registrations } of this.registry.connect()) this.set(sink, paths, registrations);
  }

  disconnected(): void {
    this.sink = undefined;
    this.registry.disconnected();
  }

  dropOneShots(): void {
    this.registry.dropOneShots();
  }

  onEvent(event: WatchEvent): void {
    this.events++;
    const path = this.chroot.toClient(event.path);
    if (path !== undefined) this.registry.dispatch(path === event.path ? event : { type: event.type, path });
  }

  /**
   * Handles the answer to the oldest `setWatches`. Throws `ConnectionLostError` if the server has set none of the
   * watches, because they must be set on another connection. If it is too old for persistent watches, closes those.
   */
  onWatchesSet(code: number): void {
    const registrations = this.unanswered.shift() ?? [];
    if (code === ServerCode.ok) {
      this.registry.wasSet(registrations);
      return;
    }
    const cause = serverError(code, { operation: 'setWatches' });
    let message = `the watches were not set again; reconnecting: ${cause.message}`;
    if (cause.code === 'unimplemented' && registrations.length > 0) {
      this.registry.refused(registrations, tooOld(cause, undefined));
      message = 'the server does not support persistent watches; reconnecting without them';
    }
    throw new ConnectionLostError('connection-lost', message, { cause });
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
    this.unanswered.push(registrations);
    sink.send(op.setWatchesFrame(this.port.lastZxid(), this.toServerPaths(paths)));
  }

  private toServerPaths(paths: op.WatchPaths): op.WatchPaths {
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

/** Returns true if the connection is lost. The next connection sets all watches again. */
function isConnectionOver({ code }: ZooKeeperError): boolean {
  return code === 'connection-lost' || code === 'closed';
}

function tooOld(cause: ZooKeeperError, path: string | undefined): ZooKeeperError {
  const place = path === undefined ? '' : ` ${path}`;
  const message = `watch${place}: this server does not support persistent watches; ZooKeeper 3.6 or newer is needed`;
  const { serverCode } = cause;
  return new ZooKeeperError('unimplemented', message, { operation: 'addWatch', path, serverCode, cause });
}
