/** Operations on records of nodes that are about to be created or locked. */

import type { CreateOptions, TransactionOp, TransactionResult } from '@nodepool/zookeeper';
import { nodeCodec } from './codec/node.js';
import { bytesOf, type Source } from './codec/codec.js';
import type { Node, NodeData } from '@nodepool/core';
import type { Written } from './caches.js';
import { NEW_NODE_PATH, nodePath } from './paths.js';

const NEW_NODE: CreateOptions = { mode: 'persistent-sequential' };

/** A write of a record that is about to be locked. */
export interface NodeClaim {
  readonly id: string;
  readonly version: number;
  readonly source: Source<Node>;
  /** The data to write; undefined leaves the record unchanged. */
  readonly data: Uint8Array | undefined;
}

/** Returns operations that create records of nodes. */
export function createOps(nodes: readonly NodeData[]): TransactionOp[] {
  return nodes.map((node) => ({
    type: 'create',
    path: NEW_NODE_PATH,
    data: bytesOf(nodeCodec.create(node)),
    options: NEW_NODE,
  }));
}

/** Returns the operation that writes a claim's change, or that checks the version if there is none. */
export function claimOp({ id, version, data }: NodeClaim): TransactionOp {
  const path = nodePath(id);
  return data === undefined ? { type: 'check', path, version } : { type: 'set', path, data, version };
}

export function writtenPaths(claims: readonly NodeClaim[]): string[] {
  const paths: string[] = [];
  for (const { id, data } of claims) if (data !== undefined) paths.push(nodePath(id));
  return paths;
}

/** Returns the contents of the claimed records after their operations. */
export function writtenBy(claims: readonly NodeClaim[], results: readonly TransactionResult[]): Written[] {
  const written: Written[] = [];
  claims.forEach(({ id, data }, index) => {
    const result = results[index];
    if (data === undefined || result?.type !== 'set') return;
    const node = { data, stat: result.stat };
    written.push({ path: nodePath(id), node });
  });
  return written;
}
