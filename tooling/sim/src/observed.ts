/** What everybody could see in ZooKeeper: nodes, requests and their locks, kept up to date commit by commit. */

import type { DumpedZnode, SimulatedZooKeeperServer } from '@nodepool/zookeeper';
import { isJsonObject, type JsonObject } from '@nodepool/core';

/** A record with its lock. */
export interface Seen {
  readonly id: string;
  readonly data: JsonObject;
  /** Identifier of the lock's holder; undefined: the lock is free. */
  readonly holder: string | undefined;
  /** Name of the holder's contender. */
  readonly contender: string | undefined;
}

export interface SeenChange {
  readonly id: string;
  readonly before: Seen | undefined;
  readonly after: Seen | undefined;
}

/** One transaction. */
export interface Commit {
  readonly nodes: readonly SeenChange[];
  readonly requests: readonly SeenChange[];
}

type Kind = 'nodes' | 'requests';

export class Observed {
  readonly nodes = new Map<string, Seen>();
  readonly requests = new Map<string, Seen>();

  constructor(private readonly server: SimulatedZooKeeperServer) {}

  /** Takes up what a transaction changed. */
  apply(paths: readonly string[]): Commit {
    const touched = { nodes: new Set<string>(), requests: new Set<string>() };
    for (const path of paths) {
      const place = placeOf(path);
      if (place !== undefined) touched[place.kind].add(place.id);
    }
    if (touched.nodes.size + touched.requests.size === 0) return { nodes: [], requests: [] };
    const dump = this.server.dump();
    return {
      nodes: [...touched.nodes].flatMap((id) => this.refresh('nodes', id, dump)),
      requests: [...touched.requests].flatMap((id) => this.refresh('requests', id, dump)),
    };
  }

  /** Begins anew, as after another state was brought back. */
  reset(): void {
    this.nodes.clear();
    this.requests.clear();
    const dump = this.server.dump();
    for (const path of dump.keys()) {
      const place = placeOf(path);
      if (place !== undefined) this.refresh(place.kind, place.id, dump);
    }
  }

  private refresh(kind: Kind, id: string, dump: ReadonlyMap<string, DumpedZnode>): SeenChange[] {
    const before = this[kind].get(id);
    const after = read(kind, id, dump);
    if (after === undefined) this[kind].delete(id);
    else this[kind].set(id, after);
    return before === undefined && after === undefined ? [] : [{ id, before, after }];
  }
}

function placeOf(path: string): { readonly kind: Kind; readonly id: string } | undefined {
  const [root, folder, id] = path.slice(1).split('/');
  if (root !== 'nodepool' || id === undefined) return undefined;
  if (folder === 'nodes') return { kind: 'nodes', id };
  return folder === 'requests' || folder === 'requests-lock' ? { kind: 'requests', id } : undefined;
}

function read(kind: Kind, id: string, dump: ReadonlyMap<string, DumpedZnode>): Seen | undefined {
  const data = jsonOf(dump.get(`/nodepool/${kind}/${id}`));
  if (data === undefined) return undefined;
  const lock = kind === 'nodes' ? `/nodepool/nodes/${id}/lock/` : `/nodepool/requests-lock/${id}/`;
  let first: { readonly sequence: string; readonly path: string } | undefined;
  for (const path of dump.keys()) {
    if (!path.startsWith(lock) || !path.includes('__lock__')) continue;
    const sequence = path.slice(-10);
    if (first === undefined || sequence < first.sequence) first = { sequence, path };
  }
  const holder = first === undefined ? undefined : new TextDecoder().decode(dump.get(first.path)?.data);
  return { id, data, holder, contender: first?.path };
}

/** Undefined: there is none, or it cannot be read. */
function jsonOf(znode: DumpedZnode | undefined): JsonObject | undefined {
  if (znode === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(znode.data));
    return isJsonObject(value) ? value : undefined;
  } catch {
    // A record that is no JSON is, to every rule, a record that is not there.
    return undefined;
  }
}
