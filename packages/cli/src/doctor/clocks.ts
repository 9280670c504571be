/**
 * Compares the clock of this machine with those of launchers and of ZooKeeper. Every answer of a launcher contains its
 * time. ZooKeeper shows only the times of past changes, which reveal a clock that is ahead of this one.
 */

import type { Clock } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { LauncherAnswer } from '../launchers.js';
import { Findings, type Finding } from './finding.js';

/** HTTP dates are whole seconds. */
const TOLERANCE_S = 2;
const REMEDY = 'synchronize the clocks, e.g. with chrony: ages, timeouts and expiry of nodes depend on them';
const MAX_EXAMINED = 50;

/** The answers of launchers, the time of the questions, and that of the last answer (ms since the epoch). */
export interface ClockAnswers {
  readonly answers: readonly LauncherAnswer[];
  readonly asked: number;
  readonly answered: number;
}

export async function checkClocks(store: Store, clocks: ClockAnswers, clock: Clock): Promise<readonly Finding[]> {
  const findings = new Findings('clocks');
  for (const answer of clocks.answers) {
    if (answer.outcome !== 'known' || answer.date === undefined) continue;
    const offset = outside(answer.date.getTime(), clocks) / 1000;
    const { host } = new URL(answer.launcher);
    if (Math.abs(offset) <= TOLERANCE_S) {
      const uncertainty = Math.round((clocks.answered - clocks.asked) / 1000);
      findings.ok(host, `differs from this machine by less than ${TOLERANCE_S + uncertainty} s`);
    } else {
      const direction = offset > 0 ? 'ahead of' : 'behind';
      findings.warning(host, `is ${Math.round(Math.abs(offset))} s ${direction} this machine`, REMEDY);
    }
  }
  const newest = Math.max(await newestChange(store), newestRecord(store) * 1000);
  // Records are read while others change them, so this machine's time comes last.
  const ahead = newest - clock.now();
  if (ahead > TOLERANCE_S * 1000) {
    const reason = `its records have changes that are ${Math.round(ahead / 1000)} s in the future of this machine`;
    findings.warning('ZooKeeper', reason, REMEDY);
  } else {
    findings.ok('ZooKeeper', 'its records have no changes in the future; a clock that is behind cannot be seen there');
  }
  return findings.list;
}

/** Returns by how many ms a time is after the last answer, or as a negative number before the questions; else 0. */
function outside(time: number, { asked, answered }: ClockAnswers): number {
  return Math.max(0, time - answered) + Math.min(0, time - asked);
}

/** Returns the time (ms) of the newest change of a component, by the clock of the ZooKeeper server. */
async function newestChange({ components, zooKeeper }: Store): Promise<number> {
  const paths = [...components.all()].slice(0, MAX_EXAMINED).map(({ path }) => path);
  const stats = await Promise.all(paths.map((path) => zooKeeper.exists(path)));
  return Math.max(0, ...stats.map((stat) => stat?.mtime ?? 0));
}

/** Returns the newest time (s) in a record, by the clock of the program that wrote it. */
function newestRecord({ nodes, requests }: Store): number {
  let newest = 0;
  const look = (time: number): void => void (newest = Math.max(newest, time));
  for (const { node } of nodes.all()) look(node.state_time);
  for (const { request } of requests.all()) look(request.state_time);
  return newest;
}
