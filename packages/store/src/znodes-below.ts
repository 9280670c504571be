import { isContended as hasContender, isZooKeeperError, type CallOptions, type ZooKeeper } from '@nodepool/zookeeper';

/** Resolves with the paths of all descendants, parents first, past the cache; empty if the znode does not exist. */
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

/** Resolves with the names of the children; empty if the znode does not exist. */
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

/** Resolves with true if a lock is contended, read past the cache. */
export async function isContended(zooKeeper: ZooKeeper, path: string, options?: CallOptions): Promise<boolean> {
  return hasContender(await childrenOf(zooKeeper, path, options));
}
