/**
 * Injects faults into real ZooKeeper servers, connections and processes under 20 busy clients, and checks the clients'
 * reports.
 */

import { parseArgs } from 'node:util';
import { systemClock } from '@nodepool/core';
import { runCommandLine, UsageError } from '@nodepool/harness';
import type { FaultCounts } from './faults.js';
import { runRound } from './round.js';

const FAULTS: FaultCounts = {
  'restart-server': 20,
  'pause-server': 4,
  'kill-leader': 4,
  cut: 5,
  halve: 5,
  delay: 3,
  'half-open': 4,
  silent: 4,
  'stop-process': 4,
};
const MAX_VIOLATIONS = 50;

const HELP = `Usage: pnpm chaos [options]

Breaks real ZooKeeper servers, connections and processes under 20 busy clients, and checks what the clients said.

  --seed N     of the first round; the next ones count on (default: from the clock)
  --rounds N   default 1; each restarts servers 20 times, and takes minutes
  --help       this text

Exit status: 0 every rule held, 1 one did not, 2 wrong usage, or it could not be tried.

Example:
  $ pnpm chaos --seed 42 --rounds 3
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      rounds: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const first = wholeNumber('--seed', values.seed ?? String(systemClock.now() % 1_000_000));
  const rounds = wholeNumber('--rounds', values.rounds);
  for (let seed = first; seed < first + rounds; seed++) {
    say(`round with seed ${seed} (again: --seed ${seed})`);
    const onProgress = (line: string): void => say(`  ${line}`);
    const result = await runRound({ seed, clients: 20, processes: 5, inFlight: 200, faults: FAULTS, onProgress });
    const { violations, calls, sessionsLost, fencedWrites, unknownOutcomes, watchReads } = result;
    say(
      `  ${calls} calls, ${unknownOutcomes} creations and deletions of unknown outcome, ${sessionsLost} sessions lost, ` +
        `${fencedWrites} writes under locks, ${watchReads} reads against watches`,
    );
    for (const { rule, client, detail } of violations.slice(0, MAX_VIOLATIONS)) {
      say(`  VIOLATION of "${rule}"${client === undefined ? '' : ` by ${client}`}: ${detail}`);
    }
    say(violations.length === 0 ? '  every rule held' : `  ${violations.length} violations with seed ${seed}`);
    if (violations.length > 0) process.exitCode = 1;
  }
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new UsageError(`${name} takes a whole number, not "${text}"`);
  return value;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

runCommandLine(HELP, main, 2);
