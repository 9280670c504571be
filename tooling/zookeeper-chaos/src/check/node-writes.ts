/** Rule: the client's reports on writes agree with the server's state, for znodes with unique paths. */

import type { ClientHistory, FinalState, NodeWrite, Violation } from '../history.js';

const RULE = 'no write reported wrongly';

/** Codes that explain why a valid write was not applied. Any other code is a wrong answer. */
const HARMLESS_CODES: ReadonlySet<string> = new Set([
  'connection-lost',
  'timeout',
  'session-lost',
  'overloaded',
  'session-moved',
  'throttled',
]);

/** The creation of one path, and its deletion if a client tried it. */
interface ZnodeWrites {
  readonly client: string;
  readonly creation: NodeWrite;
  deletion: NodeWrite | undefined;
}

export function checkNodeWrites(histories: readonly ClientHistory[], final: FinalState): Violation[] {
  const violations: Violation[] = [];
  const writesByPath = new Map<string, ZnodeWrites>();
  for (const { client, nodeWrites } of histories) {
    for (const write of nodeWrites) {
      const problem = answerProblem(write);
      if (problem !== undefined) violations.push({ rule: RULE, client, detail: problem });
      for (const path of write.creates) writesByPath.set(path, { client, creation: write, deletion: undefined });
      for (const path of write.deletes) {
        const writes = writesByPath.get(path);
        if (writes !== undefined) writes.deletion = write;
      }
    }
  }
  const present = new Set<string>();
  for (const path of final.nodes) {
    if (present.has(path)) violations.push({ rule: RULE, detail: `${path} was created more than once` });
    if (!writesByPath.has(path)) violations.push({ rule: RULE, detail: `${path} exists, but no client created it` });
    present.add(path);
  }
  for (const [path, writes] of writesByPath) {
    const problem = stateProblem(writes, present.has(path));
    if (problem !== undefined) {
      violations.push({ rule: RULE, client: writes.client, detail: `${path} ${problem}` });
    }
  }
  violations.push(...checkAtomicity(writesByPath, present));
  return violations;
}

function answerProblem(write: NodeWrite): string | undefined {
  const { outcome, code = '', mustFail } = write;
  const what = [...write.creates, ...write.deletes].join(' and ');
  if (mustFail && outcome === 'applied') return `${what}: applied, against its condition`;
  if (outcome !== 'not-applied' || HARMLESS_CODES.has(code)) return undefined;
  return mustFail && code === 'bad-version' ? undefined : `${what}: failed with ${code}`;
}

function stateProblem({ creation, deletion }: ZnodeWrites, present: boolean): string | undefined {
  if (present) {
    if (creation.mustFail || creation.outcome === 'not-applied') return 'exists, but its creation was not applied';
    return deletion?.outcome === 'applied' ? 'exists, but its deletion was applied' : undefined;
  }
  if (creation.outcome !== 'applied' || creation.mustFail) return undefined;
  const deletedPerhaps = deletion !== undefined && deletion.outcome !== 'not-applied';
  return deletedPerhaps ? undefined : 'is missing, but its creation was applied and no deletion was';
}

/** Checks that the undeleted znodes of one creation all exist or all do not. */
function checkAtomicity(writesByPath: ReadonlyMap<string, ZnodeWrites>, present: ReadonlySet<string>): Violation[] {
  const violations: Violation[] = [];
  const seen = new Set<NodeWrite>();
  for (const { client, creation } of writesByPath.values()) {
    if (creation.creates.length < 2 || seen.has(creation)) continue;
    seen.add(creation);
    const kept = creation.creates.filter((path) => writesByPath.get(path)?.deletion === undefined);
    const existing = kept.filter((path) => present.has(path));
    if (existing.length === 0 || existing.length === kept.length) continue;
    const detail = `a transaction was applied in part: of ${kept.join(', ')} there is only ${existing.join(', ')}`;
    violations.push({ rule: RULE, client, detail });
  }
  return violations;
}
