/**
 * The field `interruption` of nodes. It is the only change of a record that a launcher writes without the lock of the
 * node, because the holder of the lock must learn of it. The write requires the version that the launcher knows, and
 * handles of the node accept a version that differs in this field only.
 */

import { isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import { isError, type JsonObject, type Node, type NodeData, type NodeInterruption } from '@nodepool/core';
import { parseObject, type Source } from '../codec/codec.js';
import { nodeCodec } from '../codec/node.js';
import { isStale } from '../commit/commit.js';
import type { RecordHandle } from '../commit/record-handle.js';
import type { StoreContext } from '../context.js';
import { nodePath } from '../paths.js';
import type { NodeEntry } from './node-entry.js';

/** Writes or removes the field. Resolves with false if the record has changed since `entry`, or is deleted. */
export async function writeInterruption(
  { zooKeeper, caches }: StoreContext,
  { id, source, version }: NodeEntry,
  interruption: NodeInterruption | null,
  options?: CallOptions,
): Promise<boolean> {
  const next = nodeCodec.change(source, { interruption });
  if (next === source) return true;
  const path = nodePath(id);
  const expectation = caches.expect([path]);
  try {
    const stat = await zooKeeper.set(path, next.data, { ...options, version });
    expectation.applied([{ path, node: { data: next.data, stat } }]);
    return true;
  } catch (error) {
    expectation.unknown();
    if (isStale(error)) return false;
    throw error;
  }
}

/**
 * Reads a record whose lock this process holds after a write of it has failed. Resolves with true if it was changed,
 * and differs from the known one in its interruption only; the handle then has the version that was read.
 */
export async function adoptInterruption(
  { zooKeeper }: StoreContext,
  record: RecordHandle<NodeData>,
  error: unknown,
  options?: CallOptions,
): Promise<boolean> {
  if (!record.lock.held || !isError(error) || !isStale(error.cause)) return false;
  const { data, stat } = await zooKeeper.get(record.path, options).catch((failure: unknown) => {
    if (isZooKeeperError(failure, 'no-node')) return { data: undefined, stat: undefined };
    throw failure;
  });
  if (data === undefined || stat.version === record.version) return false;
  const found = nodeCodec.decode(data, { id: record.source.value.id }, stat.mtime / 1000);
  if (!found.ok || textWithout(found.source) !== textWithout(record.source)) return false;
  record.source = found.source;
  record.version = stat.version;
  return true;
}

/** Returns the record without its interruption, as text that is equal for equal records. */
function textWithout({ data }: Source<Node>): string {
  const parsed = parseObject(data);
  if (typeof parsed === 'string') return parsed;
  const { interruption: _interruption, ...rest }: JsonObject = parsed;
  return JSON.stringify(rest);
}
