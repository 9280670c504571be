/** Watches one record at the server with one-shot watches. */

import { Latch, untilAborted, type NodeRequest } from '@nodepool/core';
import { CorruptRecordError, requestCodec, requestPath, type Source } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { pauseAfter, type RequestorContext } from './context.js';

/** Identifies a request. The id alone is not enough, because ZooKeeper reuses ids after a backup is restored. */
export interface RequestIdentity {
  readonly id: string;
  /** Session whose end deletes the request; 0 for a durable request. */
  readonly owner: bigint;
}

/** A request and the version that was read. */
export interface ReadRequest {
  readonly source: Source<NodeRequest>;
  readonly version: number;
}

/**
 * Reads a request, retrying while ZooKeeper cannot be reached. Resolves with undefined if it does not exist. Rejects
 * with `CorruptRecordError` if the record is corrupt.
 */
export async function readRequest(
  context: RequestorContext,
  { id, owner }: RequestIdentity,
  signal: AbortSignal,
  watch?: () => void,
): Promise<ReadRequest | undefined> {
  const { zooKeeper } = context;
  const path = requestPath(id);
  for (let synced = false; ;) {
    try {
      const { data, stat } = await zooKeeper.get(path, { signal, ...(watch === undefined ? {} : { watch }) });
      if (stat.ephemeralOwner !== owner) return undefined;
      const decoded = requestCodec.decode(data, { id }, stat.mtime / 1000);
      if (!decoded.ok) throw new CorruptRecordError(path, decoded.reason);
      return { source: decoded.source, version: stat.version };
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) await pauseAfter(context, error, signal);
      else if (synced) return undefined;
      // The server of a new session may lag behind the one that processed the creation.
      else synced = await sync(context, path, signal);
    }
  }
}

/** Resolves with false if the server could not be reached. */
async function sync(context: RequestorContext, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    await context.zooKeeper.sync(path, { signal });
    return true;
  } catch (error) {
    await pauseAfter(context, error, signal);
    return false;
  }
}

/**
 * Yields the current request, and again after each change and each call of the listener given to `subscribe`; combines
 * changes in quick succession. Yields undefined at the end, when the request is removed.
 */
export async function* follow(
  context: RequestorContext,
  request: RequestIdentity,
  signal: AbortSignal,
  subscribe: (listener: () => void) => () => void = () => () => undefined,
): AsyncGenerator<NodeRequest | undefined, void, undefined> {
  let changed = new Latch(false);
  const unsubscribe = subscribe(() => changed.open());
  try {
    for (;;) {
      changed = new Latch(false);
      const current = changed;
      const seen = await readRequest(context, request, signal, () => current.open());
      yield seen?.source.value;
      if (seen === undefined) return;
      await untilAborted(current.wait(), signal);
    }
  } finally {
    unsubscribe();
  }
}

/** Resolves once a znode does not exist. */
export async function untilAbsent(context: RequestorContext, path: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const changed = new Latch(false);
    try {
      if ((await context.zooKeeper.exists(path, { signal, watch: () => changed.open() })) === undefined) return;
      await untilAborted(changed.wait(), signal);
    } catch (error) {
      await pauseAfter(context, error, signal);
    }
  }
}
