/** Rule: the client's reports on conditional writes agree with all reads. */

import type { ClientHistory, FinalState, RegisterWrite, Violation } from '../history.js';

const RULE = 'no write reported wrongly';

interface RegisterSummary {
  applied: number;
  unknown: number;
  /** Value by version, from writes and reads. */
  readonly valueAt: Map<number, string>;
}

export function checkRegisters(histories: readonly ClientHistory[], final: FinalState): Violation[] {
  const violations: Violation[] = [];
  const complain = (client: string | undefined, detail: string): void => {
    violations.push(client === undefined ? { rule: RULE, detail } : { rule: RULE, client, detail });
  };
  const tallies = new Map<string, RegisterSummary>();
  const writes = new Map<string, RegisterWrite>();
  for (const { client, registerWrites } of histories) {
    for (const write of registerWrites) {
      writes.set(`${write.path} ${write.value}`, write);
      const tally = tallyOf(tallies, write.path);
      if (write.outcome === 'unknown') tally.unknown++;
      if (write.outcome !== 'applied') continue;
      tally.applied++;
      const { path, value, onVersion, version = -1 } = write;
      if (version !== onVersion + 1) complain(client, `${path}: written on version ${onVersion}, it became ${version}`);
      agree(tally, version, value, (other) =>
        complain(client, `${path}: version ${version} was made by ${value} and by ${other}`),
      );
    }
  }
  for (const { client, registerReads } of histories) {
    for (const { path, version, value } of registerReads) {
      if (version === 0) continue;
      const write = writes.get(`${path} ${value}`);
      if (write === undefined) complain(client, `${path}: read ${value}, which no client wrote`);
      else if (write.outcome === 'not-applied') complain(client, `${path}: read ${value}, which was not applied`);
      agree(tallyOf(tallies, path), version, value, (other) =>
        complain(client, `${path}: version ${version} was read as ${value}, but is ${other}`),
      );
    }
  }
  for (const [path, { applied, unknown }] of tallies) {
    const version = final.registers[path]?.version ?? -1;
    if (version >= applied && version <= applied + unknown) continue;
    const detail = `${path}: version ${version} after ${applied} writes that were applied and ${unknown} that may have been`;
    complain(undefined, detail);
  }
  return violations;
}

function tallyOf(tallies: Map<string, RegisterSummary>, path: string): RegisterSummary {
  let tally = tallies.get(path);
  if (tally === undefined) {
    tally = { applied: 0, unknown: 0, valueAt: new Map() };
    tallies.set(path, tally);
  }
  return tally;
}

function agree(tally: RegisterSummary, version: number, value: string, otherwise: (other: string) => void): void {
  const other = tally.valueAt.get(version);
  if (other === undefined) tally.valueAt.set(version, value);
  else if (other !== value) otherwise(other);
}
