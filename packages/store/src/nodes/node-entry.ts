/** A node record as cached, its reading past the cache, and its creation. */

import { isZooKeeperError, type CallOptions, type CreateOptions, type TransactionOp } from '@nodepool/zookeeper';
import type { Node, NodeData } from '@nodepool/core';
import { bytesOf, type Source } from '../codec/codec.js';
import { nodeCodec } from '../codec/node.js';
import type { StoreContext } from '../context.js';
import { CorruptRecordError } from '../errors.js';
import { NEW_NODE_PATH, nodeLockPath, nodePath } from '../paths.js';
import { isCorrupt, type RecordTable } from '../tables/record-table.js';
import { isContended } from '../znodes-below.js';

const NEW_NODE: CreateOptions = { mode: 'persistent-sequential' };

export type NodeTable = RecordTable<NodeData, NodeEntry>;

/** A node record as cached. */
export class NodeEntry {
  readonly id: string;
  readonly node: Node;

  constructor(
    readonly source: Source<Node>,
    /** Version of the znode, for versioned writes. */
    readonly version: number,
    /** True while the lock has contenders. */
    readonly locked: boolean,
  ) {
    this.node = source.value;
    this.id = source.value.id;
  }
}

/** Reads a node past the cache. Resolves with undefined if there is none. */
export async function readNode(
  context: StoreContext,
  table: NodeTable,
  id: string,
  options?: CallOptions,
): Promise<NodeEntry | undefined> {
  const { zooKeeper } = context;
  try {
    const [znode, contended] = await Promise.all([
      zooKeeper.get(nodePath(id), options),
      isContended(zooKeeper, nodeLockPath(id), options),
    ]);
    const record = table.decode(id, znode, contended);
    if (isCorrupt(record)) throw new CorruptRecordError(record.path, record.reason);
    return record;
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return undefined;
    throw error;
  }
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
