/**
 * Rules: every operation has an outcome, ephemerals live as long as their sessions, tree caches equal the server's
 * data.
 */

import type { ClientHistory, FinalState, Violation } from '../history.js';

const MAX_DIFFERENCES = 5;

export function checkOutcomes(histories: readonly ClientHistory[]): Violation[] {
  return histories.flatMap(({ client, unsettled, unexpected }) => [
    ...unsettled.map((detail): Violation => ({ rule: 'no operation without an outcome', client, detail })),
    ...unexpected.map((detail): Violation => ({ rule: 'only errors of its own', client, detail })),
  ]);
}

export function checkEphemerals(histories: readonly ClientHistory[], final: FinalState): Violation[] {
  const rule = 'ephemerals live as long as their sessions';
  const violations: Violation[] = [];
  const open = new Set(histories.map(({ session }) => session));
  for (const { client, ephemerals } of histories) {
    for (const { path, outcome, owner } of ephemerals) {
      const found = final.ephemerals[path];
      if (outcome === 'not-applied' && found !== undefined) {
        violations.push({ rule, client, detail: `${path} exists, but its creation was not applied` });
      }
      if (outcome === 'applied' && found === undefined && owner !== undefined && open.has(owner)) {
        violations.push({ rule, client, detail: `${path} is missing, but its session ${owner} is open` });
      }
    }
  }
  for (const [path, owner] of Object.entries(final.ephemerals)) {
    if (!open.has(owner)) violations.push({ rule, detail: `${path} exists, but its session ${owner} is over` });
  }
  return violations;
}

export function checkTrees(histories: readonly ClientHistory[], final: FinalState): Violation[] {
  return histories.flatMap(({ client, tree }) => {
    const paths = new Set([...Object.keys(tree), ...Object.keys(final.tree)]);
    const differences = [...paths].filter((path) => tree[path] !== final.tree[path]);
    return differences.slice(0, MAX_DIFFERENCES).map((path): Violation => {
      const detail = `${path} is ${tree[path] ?? 'missing'} in the cache, ${final.tree[path] ?? 'missing'} at the server`;
      return { rule: 'tree caches equal to the server’s', client, detail };
    });
  });
}
