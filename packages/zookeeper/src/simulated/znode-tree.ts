/**
 * The znodes of the simulated server, with the rules of ZooKeeper 3.8 for refusals and for the stats of a znode and its
 * parent (`PrepRequestProcessor`, `DataTree`, `DataNode.copyStat`).
 */

import { OPEN_ACL, Permission, type Acl, type Stat } from '../api.js';
import { parentPath } from '../client/paths.js';
import { allows, maskedAcl, storedAcl, type ServerIdentity } from './access.js';
import { Refusal, RefusedError, type Change, type WriteRequest, type WriteResult } from './messages.js';
import type { Znode } from './znode.js';
import { checkVersion, CONTAINER_OWNER, freshNode, nameOf, ownerOf, sequenceDigits, statOf } from './znode.js';

/** The server's own znodes, which clients cannot delete. */
const SPECIAL_PATHS: ReadonlySet<string> = new Set(['/', '/zookeeper', '/zookeeper/config', '/zookeeper/quota']);

/** The session and the time of a write. */
export interface WriteContext {
  readonly zxid: bigint;
  readonly now: number;
  readonly sessionId: bigint;
  readonly identities: readonly ServerIdentity[];
}

/** A znode, for checkers. */
export interface DumpedZnode {
  readonly data: Uint8Array;
  readonly stat: Stat;
}

export class ZnodeTree {
  private readonly nodes: Map<string, Znode>;
  private readonly ephemerals: Map<bigint, Set<string>>;
  /** Undo steps of the transaction in progress. */
  private journal: (() => void)[] | undefined;
  /** Paths of containers and TTL znodes, for the clean-up. */
  private readonly expirable: Set<string>;

  constructor(
    private readonly settings: { readonly ttlNodes: boolean },
    from?: ZnodeTree,
  ) {
    this.nodes = new Map();
    this.ephemerals = new Map();
    this.expirable = new Set(from?.expirable);
    if (from === undefined) {
      for (const path of SPECIAL_PATHS)
        this.link(path, freshNode(new Uint8Array(), OPEN_ACL, { zxid: 0n, now: 0 }, 0n, 0));
      return;
    }
    for (const [path, node] of from.nodes) this.nodes.set(path, { ...node, children: new Set(node.children) });
    for (const [owner, paths] of from.ephemerals) this.ephemerals.set(owner, new Set(paths));
  }

  copy(): ZnodeTree {
    return new ZnodeTree(this.settings, this);
  }

  stat(path: string): Stat | undefined {
    const node = this.nodes.get(path);
    return node === undefined ? undefined : statOf(node);
  }

  read(path: string, identities: readonly ServerIdentity[]): { readonly data: Uint8Array; readonly stat: Stat } {
    const node = this.permitted(path, Permission.read, identities);
    return { data: node.data.slice(), stat: statOf(node) };
  }

  children(
    path: string,
    identities: readonly ServerIdentity[],
  ): { readonly children: readonly string[]; readonly stat: Stat } {
    const node = this.permitted(path, Permission.read, identities);
    return { children: [...node.children], stat: statOf(node) };
  }

  /** Returns the paths of a session's ephemeral znodes that start with `prefix`. */
  ephemeralsOf(sessionId: bigint, prefix: string): string[] {
    return [...(this.ephemerals.get(sessionId) ?? [])].filter((path) => path.startsWith(prefix));
  }

  countDescendants(path: string, identities: readonly ServerIdentity[]): number {
    this.permitted(path, Permission.read, identities);
    if (path === '/') return this.nodes.size - 1;
    let count = 0;
    for (const other of this.nodes.keys()) if (other.startsWith(`${path}/`)) count++;
    return count;
  }

  acl(path: string, identities: readonly ServerIdentity[]): { readonly acl: readonly Acl[]; readonly stat: Stat } {
    const node = this.permitted(path, Permission.read | Permission.admin, identities);
    const acl = allows(node.acl, Permission.admin, identities) ? node.acl : maskedAcl(node.acl);
    return { acl, stat: statOf(node) };
  }

  setAcl(path: string, acl: readonly Acl[], version: number, identities: readonly ServerIdentity[]): Stat {
    const stored = storedAcl(acl, identities);
    const node = this.permitted(path, Permission.admin, identities);
    checkVersion(node.aversion, version);
    node.acl = stored;
    node.aversion++;
    return statOf(node);
  }

  /** Applies one write and appends its changes to `changes`. Throws `RefusedError` and changes nothing. */
  write(request: WriteRequest, context: WriteContext, changes: Change[]): WriteResult {
    switch (request.type) {
      case 'create':
        return this.create(request, context, changes);
      case 'delete':
        this.delete(request, context, changes);
        return { path: request.path, stat: undefined };
      case 'set':
        return this.set(request, context, changes);
      case 'check':
        checkVersion(this.permitted(request.path, Permission.read, context.identities).version, request.version);
        return { path: request.path, stat: undefined };
    }
  }

  /** Applies all writes or none. Returns the index and code of the first refused write, if any. */
  writeAll(
    requests: readonly WriteRequest[],
    context: WriteContext,
    changes: Change[],
  ): WriteResult[] | { readonly index: number; readonly serverCode: number } {
    const results: WriteResult[] = [];
    const journal: (() => void)[] = [];
    this.journal = journal;
    try {
      for (const request of requests) results.push(this.write(request, context, changes));
      return results;
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      this.journal = undefined;
      for (const undo of journal.reverse()) undo();
      changes.length = 0;
      return { index: results.length, serverCode: error.serverCode };
    } finally {
      this.journal = undefined;
    }
  }

  /** True if there are containers or TTL znodes. */
  get hasExpirable(): boolean {
    return this.expirable.size > 0;
  }

  /** Deletes the ephemeral znodes of a session that ended. */
  removeEphemerals(context: WriteContext, changes: Change[]): void {
    for (const path of [...(this.ephemerals.get(context.sessionId) ?? [])]) this.unlink(path, context, changes);
  }

  /** Returns the paths of the containers and TTL znodes that the server would delete now. */
  expired(now: number): string[] {
    const paths: string[] = [];
    for (const path of this.expirable) {
      const node = this.nodes.get(path);
      if (node === undefined || node.children.size > 0) continue;
      const due = node.owner === CONTAINER_OWNER ? node.creations > 0 : now - node.mtime > node.ttlMs;
      if (due) paths.push(path);
    }
    return paths;
  }

  /** Deletes a znode without children, regardless of its version. */
  unlink(path: string, context: WriteContext, changes: Change[]): void {
    const node = this.nodes.get(path);
    const parent = this.nodes.get(parentPath(path) ?? '');
    if (node === undefined || parent === undefined) return;
    const name = nameOf(path);
    this.remember(() => {
      this.link(path, node);
    });
    this.rememberParent(parent);
    this.nodes.delete(path);
    this.ephemerals.get(node.owner)?.delete(path);
    this.expirable.delete(path);
    parent.children.delete(name);
    parent.pzxid = context.zxid;
    changes.push({ type: 'deleted', path, acl: node.acl, parentAcl: parent.acl });
  }

  /** Returns every znode by path, sorted. */
  dump(): Map<string, DumpedZnode> {
    const paths = [...this.nodes.keys()].sort();
    const dumped = new Map<string, DumpedZnode>();
    for (const path of paths) {
      const node = this.nodes.get(path);
      if (node !== undefined) dumped.set(path, { data: node.data.slice(), stat: statOf(node) });
    }
    return dumped;
  }

  private create(
    request: Extract<WriteRequest, { type: 'create' }>,
    context: WriteContext,
    changes: Change[],
  ): WriteResult {
    const { mode } = request;
    const parentName = parentPath(request.path);
    if (parentName === undefined) throw new RefusedError(Refusal.nodeExists);
    if (mode.endsWith('-ttl') && !this.settings.ttlNodes) throw new RefusedError(Refusal.unimplemented);
    const acl = storedAcl(request.acl, context.identities);
    const parent = this.permitted(parentName, Permission.create, context.identities);
    const sequential = mode.includes('-sequential');
    const path = sequential ? request.path + sequenceDigits(parent.creations) : request.path;
    if (this.nodes.has(path)) throw new RefusedError(Refusal.nodeExists);
    // Session ids of the simulation are positive; the marks of containers and TTL nodes are negative.
    if (parent.owner > 0n) throw new RefusedError(Refusal.noChildrenForEphemerals);
    const node = freshNode(request.data, acl, context, ownerOf(request, context.sessionId), request.ttlMs);
    this.rememberParent(parent);
    this.remember(() => {
      this.drop(path);
    });
    parent.creations++;
    parent.pzxid = context.zxid;
    this.link(path, node);
    changes.push({ type: 'created', path, acl, parentAcl: parent.acl });
    return { path, stat: statOf(node) };
  }

  private delete(request: Extract<WriteRequest, { type: 'delete' }>, context: WriteContext, changes: Change[]): void {
    const parent = parentPath(request.path);
    if (parent === undefined || SPECIAL_PATHS.has(request.path)) throw new RefusedError(Refusal.badArguments);
    this.permitted(parent, Permission.delete, context.identities);
    const node = this.existing(request.path);
    checkVersion(node.version, request.version);
    if (node.children.size > 0) throw new RefusedError(Refusal.notEmpty);
    this.unlink(request.path, context, changes);
  }

  private set(request: Extract<WriteRequest, { type: 'set' }>, context: WriteContext, changes: Change[]): WriteResult {
    const node = this.permitted(request.path, Permission.write, context.identities);
    checkVersion(node.version, request.version);
    const { data, mzxid, mtime, version } = node;
    this.remember(() => {
      Object.assign(node, { data, mzxid, mtime, version });
    });
    node.data = request.data;
    node.mzxid = context.zxid;
    node.mtime = context.now;
    node.version = version + 1;
    // The parent has no event for a change of data.
    changes.push({ type: 'changed', path: request.path, acl: node.acl, parentAcl: [] });
    return { path: request.path, stat: statOf(node) };
  }

  private existing(path: string): Znode {
    const node = this.nodes.get(path);
    if (node === undefined) throw new RefusedError(Refusal.noNode);
    return node;
  }

  private permitted(path: string, anyOf: number, identities: readonly ServerIdentity[]): Znode {
    const node = this.existing(path);
    if (!allows(node.acl, anyOf, identities)) throw new RefusedError(Refusal.noAuth);
    return node;
  }

  private link(path: string, node: Znode): void {
    this.nodes.set(path, node);
    const parent = parentPath(path);
    if (parent !== undefined) this.nodes.get(parent)?.children.add(nameOf(path));
    if (node.ttlMs > 0 || node.owner === CONTAINER_OWNER) this.expirable.add(path);
    else if (node.owner !== 0n) {
      const owned = this.ephemerals.get(node.owner);
      if (owned === undefined) this.ephemerals.set(node.owner, new Set([path]));
      else owned.add(path);
    }
  }

  private drop(path: string): void {
    const node = this.nodes.get(path);
    this.nodes.delete(path);
    this.nodes.get(parentPath(path) ?? '')?.children.delete(nameOf(path));
    this.expirable.delete(path);
    if (node !== undefined) this.ephemerals.get(node.owner)?.delete(path);
  }

  private remember(undo: () => void): void {
    this.journal?.push(undo);
  }

  private rememberParent(parent: Znode): void {
    const { pzxid, creations } = parent;
    this.remember(() => {
      parent.pzxid = pzxid;
      parent.creations = creations;
    });
  }
}
