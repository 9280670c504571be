/**
 * Rule: no watch event is lost or duplicated.
 *
 * A persistent watch delivers one event per change, before any answer that reflects the change. Let `base` be the
 * number of changes when the watch was set. A read that is issued after `eventsBefore` events, is answered after
 * `eventsAfter`, and finds `changes` implies `base + eventsBefore <= changes <= base + eventsAfter`. An event was lost
 * or duplicated if no `base` satisfies all reads. The final read, without concurrent changes, makes the bound exact.
 */

import type { ClientHistory, FinalState, Violation, WatchSegment } from '../history.js';

const RULE = 'no watch event lost or duplicated';

export function checkWatches(histories: readonly ClientHistory[], final: FinalState): Violation[] {
  const violations: Violation[] = [];
  for (const { client, segments, oneShots } of histories) {
    for (const segment of segments) {
      const detail = contradiction(segment);
      if (detail !== undefined) violations.push({ rule: RULE, client, detail });
    }
    for (const { path, version, events } of oneShots) {
      if (events > 1)
        violations.push({ rule: RULE, client, detail: `${path}: a one-shot watch received ${events} events` });
      const now = final.registers[path]?.version ?? version;
      if (events > 0 || now === version) continue;
      const detail = `${path}: a one-shot watch at version ${version} received no event, and the znode has version ${now}`;
      violations.push({ rule: RULE, client, detail });
    }
  }
  return violations;
}

function contradiction({ path, reads }: WatchSegment): string | undefined {
  let lowest = -Infinity;
  let highest = Infinity;
  for (const { changes, eventsBefore, eventsAfter } of reads) {
    lowest = Math.max(lowest, changes - eventsAfter);
    highest = Math.min(highest, changes - eventsBefore);
    if (lowest <= highest) continue;
    const read = `${changes} changes read between events ${eventsBefore} and ${eventsAfter}`;
    return `${path}: events were ${changes - eventsAfter === lowest ? 'lost' : 'duplicated'}: ${read}`;
  }
  return undefined;
}
