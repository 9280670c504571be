/**
 * The field `interruption` of nodes. It is the only change of a record that a launcher writes without the lock of the
 * node, because the holder of the lock must learn of it. The write requires the version that the launcher knows, and
 * handles of the node accept a version that differs in this field only.
 */

import { isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import type { JsonObject, NodeData, NodeInterruption } from '@nodepool/core';
import { parseObject } from '../codec/codec.js';
import { nodeCodec } from '../codec/node.js';
import { isStale } from '../commit/commit.js';
import type { RecordHandle } from '../commit/record-handle.js';
import type { StoreContext } from '../context.js';
import { LostOwnershipError } from '../errors.js';
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
 * Reads a record whose lock this process holds after a write of it has failed. Resolves with true if it differs from
 * the known record, or from `written`, in its interruption only; the handle then has the version that was read, and the
 * write can be repeated.
 */
export async function adoptInterruption(
  { zooKeeper }: StoreContext,
  record: RecordHandle<NodeData>,
  written: Uint8Array | undefined,
  error: unknown,
  options?: CallOptions,
): Promise<boolean> {
  if (!record.lock.held || !(error instanceof LostOwnershipError)) return false;
  let read: Awaited<ReturnType<typeof zooKeeper.get>>;
  try {
    read = await zooKeeper.get(record.path, options);
  } catch (failure) {
    if (isZooKeeperError(failure, 'no-node')) return false;
    throw failure;
  }
  const { data, stat } = read;
  if (stat.version === record.version) return false;
  const found = nodeCodec.decode(data, { id: record.source.value.id }, stat.mtime / 1000);
  if (!found.ok) return false;
  const expected = [record.source.data, ...(written === undefined ? [] : [written])].map(textWithout);
  if (!expected.includes(textWithout(data))) return false;
  record.source = found.source;
  record.version = stat.version;
  return true;
}

/** Returns the record without its interruption, as text that is equal for equal records. */
function textWithout(data: Uint8Array): string {
  const parsed = parseObject(data);
  if (typeof parsed === 'string') return parsed;
  const { interruption: _interruption, ...rest }: JsonObject = parsed;
  return JSON.stringify(rest);
}
