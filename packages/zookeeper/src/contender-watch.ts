/** Detects that another client deleted or adopted the contender of a held lock. */

import type { ZooKeeper } from './api.js';
import { sleep, type Clock } from './clock.js';
import type { ContenderLock } from './contender-lock.js';
import { isZooKeeperError } from './errors.js';

const RETRY_MS = 1000;

/** Watches in the background while the lock is held, and ends it when it is lost. */
export function watchContender(zk: ZooKeeper, lock: ContenderLock, clock: Clock): void {
  const check = async (): Promise<void> => {
    while (!lock.lost.aborted) {
      try {
        // A read of a znode that does not exist sets no watch. A watch from `exists` would stay for the session.
        const { stat } = await zk.get(lock.contender, { signal: lock.lost, watch: () => void check() });
        lock.contenderRead(stat);
        return;
      } catch (error) {
        if (isZooKeeperError(error, 'no-node')) {
          lock.contenderDeleted();
          return;
        }
        // A persistent lock survives the client.
        if (isZooKeeperError(error, 'closed')) return;
        // Without an answer, the lock counts as held until the session is lost.
        await sleep(clock, RETRY_MS, lock.lost).catch(() => undefined);
      }
    }
  };
  void check();
}
