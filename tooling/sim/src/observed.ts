/** Nodes, requests and their locks as visible in ZooKeeper, updated with each commit, and the writer of each change. */

import type { DumpedZnode, SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { TransactionOp } from '@nodepool/zookeeper';
import { isJsonObject, type JsonObject } from '@nodepool/core';
import { partsOfUpload } from './images/upload-path.js';

/** A record and its lock. */
export interface Seen {
  readonly id: string;
  readonly data: JsonObject;
  /** The stored text of `data`. */
  readonly text: string;
  /** Identifier of the lock's holder; undefined if the lock is free. */
  readonly holder: string | undefined;
  /** Name of the holder's contender. */
  readonly contender: string | undefined;
  /** Session that the record is deleted with; 0 for none. */
  readonly owner: bigint;
}

export type Writer = 'requestor' | 'launcher';

export interface SeenChange {
  readonly id: string;
  readonly before: Seen | undefined;
  readonly after: Seen | undefined;
  /** The writer of the change; undefined if only the lock changed. */
  readonly by: Writer | undefined;
}

/** A change of the record of an upload. */
export interface UploadChange {
  readonly path: string;
  readonly before: JsonObject | undefined;
  readonly after: JsonObject | undefined;
  /** True if the operator made the change. */
  readonly byHand: boolean;
}

/** One transaction. */
export interface Commit {
  readonly uploads: readonly UploadChange[];
  readonly nodes: readonly SeenChange[];
  readonly requests: readonly SeenChange[];
}

type Kind = 'nodes' | 'requests';

export class Observed {
  readonly nodes = new Map<string, Seen>();
  readonly requests = new Map<string, Seen>();
  /** Records of uploads by path. */
  readonly uploads = new Map<string, JsonObject>();
  /** Writes that requestors have announced. All others come from launchers. */
  private readonly announced = new Set<string>();

  constructor(private readonly server: SimulatedZooKeeperServer) {}

  /** Announces a requestor's write. */
  announce(ops: readonly TransactionOp[]): void {
    for (const op of ops) {
      if (op.type === 'set') this.announced.add(`${op.path}\n${textOf(op.data)}`);
      else if (op.type === 'delete') this.announced.add(`${op.path}\n`);
      // The path of a sequential znode is unknown before its creation.
      else if (op.type === 'create') this.announced.add(`\n${textOf(op.data)}`);
    }
  }

  /** Applies the changes of a transaction. */
  apply(paths: readonly string[]): Commit {
    const touched = { nodes: new Set<string>(), requests: new Set<string>() };
    for (const path of paths) {
      const place = placeOf(path);
      if (place !== undefined) touched[place.kind].add(place.id);
    }
    const uploads = [...new Set(paths)].filter((path) => partsOfUpload(path) !== undefined);
    if (touched.nodes.size + touched.requests.size + uploads.length === 0)
      return { uploads: [], nodes: [], requests: [] };
    const dump = this.server.dump();
    return {
      uploads: uploads.map((path) => this.refreshUpload(path, dump)),
      nodes: [...touched.nodes].flatMap((id) => this.refresh('nodes', id, dump)),
      requests: [...touched.requests].flatMap((id) => this.refresh('requests', id, dump)),
    };
  }

  /** Starts over after an older state was restored. */
  reset(): void {
    this.nodes.clear();
    this.requests.clear();
    this.uploads.clear();
    const dump = this.server.dump();
    for (const path of dump.keys()) {
      const place = placeOf(path);
      if (place !== undefined) this.refresh(place.kind, place.id, dump);
      if (partsOfUpload(path) !== undefined) this.refreshUpload(path, dump);
    }
  }

  /** Undefined if the znode does not exist or is not a JSON object. */
  znode(path: string): JsonObject | undefined {
    return jsonOf(textOf(this.server.dump().get(path)?.data));
  }

  /** Returns the pools in the component registry. */
  pools(): readonly JsonObject[] {
    const found: JsonObject[] = [];
    for (const [path, { data }] of this.server.dump()) {
      const pool = path.startsWith('/nodepool/components/pool/') ? jsonOf(textOf(data)) : undefined;
      if (pool !== undefined) found.push(pool);
    }
    return found;
  }

  private refresh(kind: Kind, id: string, dump: ReadonlyMap<string, DumpedZnode>): SeenChange[] {
    const before = this[kind].get(id);
    const after = read(kind, id, dump);
    if (after === undefined) this[kind].delete(id);
    else this[kind].set(id, after);
    if (before === undefined && after === undefined) return [];
    return [{ id, before, after, by: this.writerOf(`/nodepool/${kind}/${id}`, before, after) }];
  }

  private refreshUpload(path: string, dump: ReadonlyMap<string, DumpedZnode>): UploadChange {
    const before = this.uploads.get(path);
    const text = textOf(dump.get(path)?.data);
    const after = jsonOf(text);
    if (after === undefined) this.uploads.delete(path);
    else this.uploads.set(path, after);
    return { path, before, after, byHand: this.announced.has(`${path}\n${text}`) };
  }

  private writerOf(path: string, before: Seen | undefined, after: Seen | undefined): Writer | undefined {
    if (before?.text === after?.text) return undefined;
    const owner = before?.owner ?? 0n;
    const ended = owner !== 0n && !this.server.liveSessions.some(({ id }) => id === owner);
    // The server deletes a request with the session of its requestor.
    if (after === undefined && ended) return 'requestor';
    const key = before === undefined ? `\n${after?.text ?? ''}` : `${path}\n${after?.text ?? ''}`;
    return this.announced.has(key) ? 'requestor' : 'launcher';
  }
}

function placeOf(path: string): { readonly kind: Kind; readonly id: string } | undefined {
  const [root, folder, id] = path.slice(1).split('/');
  if (root !== 'nodepool' || id === undefined) return undefined;
  if (folder === 'nodes') return { kind: 'nodes', id };
  return folder === 'requests' || folder === 'requests-lock' ? { kind: 'requests', id } : undefined;
}

function read(kind: Kind, id: string, dump: ReadonlyMap<string, DumpedZnode>): Seen | undefined {
  const text = textOf(dump.get(`/nodepool/${kind}/${id}`)?.data);
  const data = jsonOf(text);
  if (data === undefined) return undefined;
  const owner = dump.get(`/nodepool/${kind}/${id}`)?.stat.ephemeralOwner ?? 0n;
  const lock = kind === 'nodes' ? `/nodepool/nodes/${id}/lock/` : `/nodepool/requests-lock/${id}/`;
  let first: { readonly sequence: string; readonly path: string } | undefined;
  for (const path of dump.keys()) {
    if (!path.startsWith(lock) || !path.includes('__lock__')) continue;
    const sequence = path.slice(-10);
    if (first === undefined || sequence < first.sequence) first = { sequence, path };
  }
  const holder = first === undefined ? undefined : textOf(dump.get(first.path)?.data);
  return { id, data, text, holder, contender: first?.path, owner };
}

function textOf(data: Uint8Array | undefined): string {
  return data === undefined ? '' : new TextDecoder().decode(data);
}

/** Returns undefined if the record does not exist, cannot be parsed, or is not a JSON object. */
function jsonOf(text: string): JsonObject | undefined {
  if (text === '') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) && value['invalid'] !== true ? value : undefined;
  } catch {
    // Rules treat an invalid record as a missing one.
    return undefined;
  }
}
