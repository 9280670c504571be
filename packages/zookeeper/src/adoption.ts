/** The holder of a lock, and the adoption of persistent contenders by later processes of their owner. */

import type { CallOptions, ZooKeeper } from './api.js';
import { isZooKeeperError } from './errors.js';
import { sortedContenders } from './lock-names.js';
import type { AdoptOptions, LockHolder } from './recipes-api.js';

/** Reads the first contender of a lock from the server. Resolves with undefined if the lock is free. */
export async function lockHolder(
  zk: ZooKeeper,
  path: string,
  options: CallOptions = {},
): Promise<LockHolder | undefined> {
  for (;;) {
    const [first] = sortedContenders(await childrenOf(zk, path, options));
    if (first === undefined) return undefined;
    const contender = `${path}/${first.name}`;
    try {
      const { data, stat } = await zk.get(contender, options);
      const { ephemeralOwner: sessionId, version } = stat;
      return { contender, identifier: Buffer.from(data).toString(), persistent: sessionId === 0n, sessionId, version };
    } catch (error) {
      // Released meanwhile: the next contender holds the lock.
      if (!isZooKeeperError(error, 'no-node')) throw error;
    }
  }
}

/** A persistent contender, and its version after the adoption. */
interface AdoptedContender {
  readonly path: string;
  readonly version: number;
}

/** Implements `LockRecipe.adopt`. */
export async function adoptContender(
  zk: ZooKeeper,
  path: string,
  owner: string,
  { takeOver = true, ...lockOptions }: AdoptOptions & CallOptions,
): Promise<AdoptedContender | undefined> {
  const { signal, timeoutMs } = lockOptions;
  const options: CallOptions = {
    ...(signal === undefined ? {} : { signal }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  // The client may have moved to a server that lags behind the one that created the contender.
  await zk.sync(path, options);
  for (;;) {
    const holder = await lockHolder(zk, path, options);
    if (holder === undefined || !holder.persistent || holder.identifier !== owner) return undefined;
    const { contender, version } = holder;
    if (!takeOver) return { path: contender, version };
    try {
      const stat = await zk.set(contender, Buffer.from(owner), { ...options, version });
      return { path: contender, version: stat.version };
    } catch (error) {
      // Another process has adopted or released the lock meanwhile. An adoption of unknown outcome is repeated: the
      // caller learns a version that no other process has.
      const isChanged = isZooKeeperError(error, 'bad-version') || isZooKeeperError(error, 'no-node');
      if (!isChanged && !isZooKeeperError(error, 'outcome-unknown')) throw error;
      signal?.throwIfAborted();
    }
  }
}

async function childrenOf(zk: ZooKeeper, path: string, options: CallOptions): Promise<readonly string[]> {
  try {
    return (await zk.children(path, options)).children;
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return [];
    throw error;
  }
}
