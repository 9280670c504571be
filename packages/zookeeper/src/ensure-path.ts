import type { CallOptions, ZooKeeper } from './api.js';
import { parentPath } from './client/paths.js';
import { isZooKeeperError } from './errors.js';

/**
 * Creates the persistent, empty znode `path` and every missing ancestor. Existing znodes keep their data. Rejects with
 * the `ZooKeeperError` of the call that failed.
 */
export async function ensurePath(zk: ZooKeeper, path: string, options: CallOptions = {}): Promise<void> {
  for (;;) {
    try {
      await zk.create(path, undefined, options);
      return;
    } catch (error) {
      if (isZooKeeperError(error, 'node-exists')) return;
      const parent = parentPath(path);
      if (isZooKeeperError(error, 'no-node') && parent !== undefined && parent !== '/')
        await ensurePath(zk, parent, options);
      // Creation is idempotent here, so an unknown outcome is retried, unless the caller has aborted.
      else if (!isZooKeeperError(error, 'outcome-unknown') || options.signal?.aborted === true) throw error;
    }
  }
}
