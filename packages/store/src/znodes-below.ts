/** What is below a znode. */

import { isZooKeeperError, type CallOptions, type ZooKeeper } from '@nodepool/zookeeper';

/** Paths of all znodes below one, parents first, read past the cache; none when there is no such znode. */
export async function znodesBelow(zooKeeper: ZooKeeper, path: string, options?: CallOptions): Promise<string[]> {
  const found: string[] = [];
  const pending = [path];
  for (let parent = pending.pop(); parent !== undefined; parent = pending.pop()) {
    for (const name of await childrenOf(zooKeeper, parent, options)) {
      const child = `${parent}/${name}`;
      found.push(child);
      pending.push(child);
    }
  }
  return found;
}

/** Names of the children; none when there is no such znode. */
export async function childrenOf(
  zooKeeper: ZooKeeper,
  path: string,
  options?: CallOptions,
): Promise<readonly string[]> {
  try {
    return (await zooKeeper.children(path, options)).children;
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return [];
    throw error;
  }
}
