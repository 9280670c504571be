/** Counters that guard a set of records: each change of the set, by any process, changes the version of its counter. */

import { ensurePath, type CallOptions } from '@nodepool/zookeeper';
import type { StoreContext } from '../context.js';

/** Resolves with the version of a counter, which it creates if necessary. */
export async function counterVersion(
  { zooKeeper }: Pick<StoreContext, 'zooKeeper'>,
  path: string,
  options?: CallOptions,
): Promise<number> {
  for (;;) {
    const stat = await zooKeeper.exists(path, options);
    if (stat !== undefined) return stat.version;
    await ensurePath(zooKeeper, path, options);
  }
}
