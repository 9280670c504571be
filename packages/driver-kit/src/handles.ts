import { sleep, systemClock } from '@nodepool/core';

/** Types in `process.getActiveResourcesInfo` that stay open until they are closed. */
const LASTING = /^(TCP(Socket|Server)|TLS|Pipe|UDP|Process|Timeout|Worker|FSEvent|Stat|HTTP)/i;

/** Maximum number of checks whether handles have closed, and the time between them (ms). */
const MAX_CHECKS = 100;
const CHECK_INTERVAL_MS = 10;

/** Returns the number of open handles by type. */
export function handlesNow(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (LASTING.test(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** Waits for handles to close, then returns the types with more open handles than before, e.g. `2 TCPSocketWrap`. */
export async function handlesSince(before: ReadonlyMap<string, number>): Promise<string[]> {
  let left: string[] = [];
  for (let look = 0; look < MAX_CHECKS; look += 1) {
    left = difference(before, handlesNow());
    if (left.length === 0) return [];
    await sleep(systemClock, CHECK_INTERVAL_MS);
  }
  return left;
}

function difference(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): string[] {
  return [...now].flatMap(([kind, count]) => {
    const more = count - (before.get(kind) ?? 0);
    return more > 0 ? [`${more} ${kind}`] : [];
  });
}
