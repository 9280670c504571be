/**
 * Rule: no two clients hold a lock at once, and no failed attempt leaves a contender.
 *
 * Each holder reads the version of the lock's counter and writes the next number, fenced by its contender. With a
 * single holder, each applied write creates exactly the expected version, and the writes of one contender are
 * contiguous.
 */

import type { ClientHistory, FencedWrite, FinalState, Violation } from '../history.js';

const LOCK_EXCLUSION = 'no lock held by two';
const CONTENDER_REMOVAL = 'no contender left behind';

export function checkLocks(histories: readonly ClientHistory[], final: FinalState): Violation[] {
  const sessions = histories.map(({ client, session }) => `${client} ${session}`).join(', ');
  const violations = final.contenders.map((contender): Violation => ({
    rule: CONTENDER_REMOVAL,
    detail: `${contender} exists after the release of all locks; open sessions: ${sessions}`,
  }));
  const byLock = new Map<string, FencedWrite[]>();
  for (const { client, fencedWrites } of histories) {
    for (const write of fencedWrites) {
      const { lock, number, version, outcome } = write;
      if (outcome !== 'applied') continue;
      if (version !== number) {
        const detail = `${lock}: another client wrote under the lock: write ${number} made version ${version ?? '?'}`;
        violations.push({ rule: LOCK_EXCLUSION, client, detail });
      }
      const writes = byLock.get(lock);
      if (writes === undefined) byLock.set(lock, [write]);
      else writes.push(write);
    }
  }
  for (const [lock, writes] of byLock) {
    writes.sort((a, b) => (a.version ?? 0) - (b.version ?? 0));
    const former = new Set<string>();
    let holder = '';
    for (const { contender, version } of writes) {
      if (contender === holder) continue;
      if (former.has(contender)) {
        const detail = `${lock}: ${contender} wrote version ${version ?? '?'} after others had held the lock`;
        violations.push({ rule: LOCK_EXCLUSION, detail });
      }
      former.add(holder);
      holder = contender;
    }
  }
  return violations;
}
