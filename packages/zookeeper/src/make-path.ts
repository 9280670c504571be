/** Makes a znode together with the parents that it lacks. */

import type { CallOptions, ZooKeeper } from './api.js';
import { parentPath } from './client/paths.js';
import { isZooKeeperError } from './errors.js';

/** Makes empty persistent znodes where there are none. What exists already stays as it is. */
export async function makePath(zk: ZooKeeper, path: string, options: CallOptions = {}): Promise<void> {
  for (;;) {
    try {
      await zk.create(path, undefined, options);
      return;
    } catch (error) {
      if (isZooKeeperError(error, 'node-exists')) return;
      const parent = parentPath(path);
      if (isZooKeeperError(error, 'no-node') && parent !== undefined && parent !== '/')
        await makePath(zk, parent, options);
      // It does not matter which of two attempts made it. An aborted call is of unknown outcome as well.
      else if (!isZooKeeperError(error, 'outcome-unknown') || options.signal?.aborted === true) throw error;
    }
  }
}
