/** The request processor of the simulated server: znodes, watches, and transaction ids. */

import type { Clock, Timer } from '../clock.js';
import type { ReadOp } from '../api.js';
import type { ServerIdentity } from './access.js';
import type { AnswerValue, Change, ReadAnswer, Request, WriteResult } from './messages.js';
import { Refusal, RefusedError } from './messages.js';
import { ServerWatches, type EventSink } from './watch-table.js';
import { ZnodeTree, type DumpedZnode, type WriteContext } from './znode-tree.js';

type ReadRequest = Exclude<
  Request,
  { type: 'create' | 'delete' | 'set' | 'check' | 'multi' | 'setAcl' | 'ephemerals' }
>;

export type CommitListener = (changes: readonly Change[], zxid: bigint) => void;

export interface DataSnapshot {
  readonly tree: ZnodeTree;
  readonly zxid: bigint;
}

/** Interval of the clean-up of containers and TTL znodes. */
const CONTAINER_CHECK_MS = 60_000;

export class ZnodeService {
  private tree: ZnodeTree;
  private watches = new ServerWatches();
  private zxid = 0n;
  private cleaner: Timer | undefined;
  private readonly commitListeners = new Set<CommitListener>();

  constructor(
    private readonly clock: Clock,
    options: { readonly ttlNodes?: boolean },
  ) {
    this.tree = new ZnodeTree({ ttlNodes: options.ttlNodes ?? false });
  }

  get lastZxid(): bigint {
    return this.zxid;
  }

  dump(): ReadonlyMap<string, DumpedZnode> {
    return this.tree.dump();
  }

  onCommit(listener: CommitListener): () => void {
    this.commitListeners.add(listener);
    return () => this.commitListeners.delete(listener);
  }

  snapshot(): DataSnapshot {
    return { tree: this.tree.copy(), zxid: this.zxid };
  }

  restore(snapshot: DataSnapshot): void {
    this.tree = snapshot.tree.copy();
    this.zxid = snapshot.zxid;
  }

  /** Stops the clean-up and removes all watches, as a server does when it stops. */
  stop(): void {
    this.cleaner?.cancel();
    this.cleaner = undefined;
    this.watches = new ServerWatches();
  }

  start(): void {
    this.scheduleCleaning();
  }

  forgetWatches(sink: EventSink): void {
    this.watches.removeSink(sink);
  }

  /** Counts the transaction of a session's creation. */
  countTransaction(): void {
    this.zxid++;
  }

  endSession(sessionId: bigint): void {
    const changes: Change[] = [];
    this.tree.removeEphemerals(this.nextContext(sessionId, []), changes);
    this.committed(changes);
  }

  /** Applies a request of a session and sets its watches for `sink`. Throws `RefusedError` and changes nothing. */
  handle(sink: EventSink, sessionId: bigint, identities: readonly ServerIdentity[], request: Request): AnswerValue {
    switch (request.type) {
      case 'create':
      case 'delete':
      case 'set':
      case 'check': {
        const changes: Change[] = [];
        const result = this.tree.write(request, this.nextContext(sessionId, identities), changes);
        this.committed(changes);
        return writeAnswer(result, request.type);
      }
      case 'multi': {
        const changes: Change[] = [];
        const results = this.tree.writeAll(request.ops, this.nextContext(sessionId, identities), changes);
        if (!Array.isArray(results)) return { type: 'multi-failed', count: request.ops.length, ...results };
        this.committed(changes);
        return { type: 'multi', ops: request.ops, results };
      }
      case 'setAcl':
        this.zxid++;
        return { type: 'stat', stat: this.tree.setAcl(request.path, request.acl, request.version, identities) };
      case 'ephemerals':
        return { type: 'paths', paths: this.tree.ephemeralsOf(sessionId, request.path) };
      default:
        return this.handleRead(sink, identities, request);
    }
  }

  private handleRead(sink: EventSink, identities: readonly ServerIdentity[], request: ReadRequest): AnswerValue {
    switch (request.type) {
      case 'exists': {
        if (request.watch) this.watches.watchData(request.path, sink);
        const stat = this.tree.stat(request.path);
        if (stat === undefined) throw new RefusedError(Refusal.noNode);
        return { type: 'stat', stat };
      }
      case 'get': {
        const node = this.tree.read(request.path, identities);
        if (request.watch) this.watches.watchData(request.path, sink);
        return { type: 'data', ...node };
      }
      case 'children': {
        const node = this.tree.children(request.path, identities);
        if (request.watch) this.watches.watchChildren(request.path, sink);
        return { type: 'children', ...node };
      }
      case 'getAcl':
        return { type: 'acl', ...this.tree.acl(request.path, identities) };
      case 'sync':
        return { type: 'path', path: request.path };
      case 'addWatch':
        this.watches.add(request.path, sink, request.recursive);
        return { type: 'none' };
      case 'removeWatches':
        if (!this.watches.remove(request.path, sink, request.kind)) throw new RefusedError(Refusal.noWatcher);
        return { type: 'none' };
      case 'setWatches':
        this.restoreWatches(sink, request);
        return { type: 'none' };
      case 'countDescendants':
        return { type: 'count', count: this.tree.countDescendants(request.path, identities) };
      case 'multiRead':
        return { type: 'reads', results: request.ops.map((op) => this.readOne(op, identities)) };
      case 'whoAmI':
        return { type: 'identities', identities: identities.map(publicIdentity) };
      case 'ping':
      case 'auth':
      case 'close':
        return { type: 'none' };
    }
  }

  private readOne({ type, path }: ReadOp, identities: readonly ServerIdentity[]): ReadAnswer {
    try {
      return type === 'get'
        ? { type: 'data', ...this.tree.read(path, identities) }
        : { type: 'children', ...this.tree.children(path, identities) };
    } catch (error) {
      if (error instanceof RefusedError) return { type: 'refused', serverCode: error.serverCode };
      throw error;
    }
  }

  /** Sets watches again (`DataTree.setWatches`). One-shot watches that missed a change fire at once. */
  private restoreWatches(sink: EventSink, request: Extract<Request, { type: 'setWatches' }>): void {
    const { sinceZxid } = request;
    for (const path of request.data) {
      const stat = this.tree.stat(path);
      if (stat === undefined) sink.sendEvent({ type: 'deleted', path });
      else if (stat.mzxid > sinceZxid) sink.sendEvent({ type: 'changed', path });
      else this.watches.watchData(path, sink);
    }
    for (const path of request.exist) {
      if (this.tree.stat(path) !== undefined) sink.sendEvent({ type: 'created', path });
      else this.watches.watchData(path, sink);
    }
    for (const path of request.children) {
      const stat = this.tree.stat(path);
      if (stat === undefined) sink.sendEvent({ type: 'deleted', path });
      else if (stat.pzxid > sinceZxid) sink.sendEvent({ type: 'children', path });
      else this.watches.watchChildren(path, sink);
    }
    for (const path of request.persistent) this.watches.add(path, sink, false);
    for (const path of request.recursive) this.watches.add(path, sink, true);
  }

  private nextContext(sessionId: bigint, identities: readonly ServerIdentity[]): WriteContext {
    // A refused transaction has an id too.
    this.zxid++;
    return { zxid: this.zxid, now: Math.floor(this.clock.now()), sessionId, identities };
  }

  private committed(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    for (const change of changes) this.watches.notify(change);
    for (const listener of this.commitListeners) listener(changes, this.zxid);
    this.scheduleCleaning();
  }

  private scheduleCleaning(): void {
    if (this.cleaner !== undefined || !this.tree.hasExpirable) return;
    const clean = (): void => {
      this.cleaner = undefined;
      this.clean();
      this.scheduleCleaning();
    };
    this.cleaner = this.clock.schedule(CONTAINER_CHECK_MS, clean, {
      background: true,
    });
  }

  private clean(): void {
    for (const path of this.tree.expired(Math.floor(this.clock.now()))) {
      const changes: Change[] = [];
      this.tree.unlink(path, this.nextContext(0n, []), changes);
      this.committed(changes);
    }
  }
}

function writeAnswer({ path, stat }: WriteResult, type: 'create' | 'delete' | 'set' | 'check'): AnswerValue {
  if (stat === undefined) return { type: 'none' };
  return type === 'create' ? { type: 'created', path, stat } : { type: 'stat', stat };
}

/** Returns the identity without its digest. */
function publicIdentity({ scheme, id }: ServerIdentity): { readonly scheme: string; readonly user: string } {
  return { scheme, user: scheme === 'digest' ? id.slice(0, id.indexOf(':')) : id };
}
