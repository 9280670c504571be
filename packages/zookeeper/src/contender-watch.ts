/** Notices when somebody else removes the contender of a lock that is held. */

import type { ZooKeeper } from './api.js';
import { sleep, type Clock } from './clock.js';
import type { ContenderLock } from './contender-lock.js';

const RETRY_MS = 1000;

/** Watches in the background for as long as the lock is held, and tells it (`taken`). */
export function watchContender(zk: ZooKeeper, lock: ContenderLock, clock: Clock): void {
  const look = async (): Promise<void> => {
    while (!lock.lost.aborted) {
      try {
        const stat = await zk.exists(lock.contender, { signal: lock.lost, watch: () => void look() });
        if (stat === undefined) lock.taken();
        return;
      } catch {
        // While there is no answer, nothing is known; the loss of the session is told elsewhere.
        await sleep(clock, RETRY_MS, lock.lost).catch(() => undefined);
      }
    }
  };
  void look();
}
