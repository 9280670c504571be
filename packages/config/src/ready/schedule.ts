/** Times of schedules: patterns of cron in a time zone. */

import { createRequire } from 'node:module';
import type * as Croner from 'croner';
import { reasonOf } from '@nodepool/core';
import type { ScheduleEntry } from './settings.js';

const load = createRequire(__filename);
const patterns = new Map<string, Croner.Cron>();
/** Limit of the patterns that are kept parsed. */
const MAX_PATTERNS = 1000;
/** Resolution of the patterns (ms). */
const SECOND_MS = 1000;

/** The entries of a schedule that apply at a time. */
export interface ScheduleState {
  /** In the order of the schedule. */
  readonly applying: readonly ScheduleEntry[];
  /** Time of the next change in milliseconds since the epoch; Infinity if there is none. */
  readonly until: number;
}

const states = new WeakMap<readonly ScheduleEntry[], ScheduleState & { readonly from: number }>();

/** Returns the entries that apply at a time in milliseconds since the epoch. */
export function scheduleAt(schedule: readonly ScheduleEntry[], now: number): ScheduleState {
  const known = states.get(schedule);
  // A state is used until it ends, because the search for the times of a pattern takes a tenth of a millisecond.
  if (known !== undefined && known.from <= now && now < known.until) return known;
  const begins = schedule.map((entry) => previous(entry.cron, entry.timezone, now));
  const latest = Math.max(...begins);
  const applying = schedule.filter(({ until, timezone }, index) => {
    const begin = begins[index] ?? -Infinity;
    if (begin === -Infinity) return false;
    return until === undefined ? begin === latest : begin >= previous(until, timezone, now);
  });
  const times = schedule.flatMap(({ cron, until, timezone }) => [
    next(cron, timezone, now),
    ...(until === undefined ? [] : [next(until, timezone, now)]),
  ]);
  const state = { applying, from: now, until: Math.min(Infinity, ...times) };
  states.set(schedule, state);
  return state;
}

/** Returns the reason why a text is no pattern; undefined if it is one. */
export function patternProblem(pattern: string): string | undefined {
  try {
    const next = cron(pattern, 'UTC').nextRun(new Date(0));
    return next === null ? 'no date matches it' : undefined;
  } catch (error) {
    const reason = reasonOf(error).replace(/^CronPattern: |\.$/gu, '');
    return reason.charAt(0).toLowerCase() + reason.slice(1);
  }
}

export function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Returns the last time of the pattern that is not after `now`; -Infinity if there is none. */
function previous(pattern: string, timezone: string, now: number): number {
  const [time] = cron(pattern, timezone).previousRuns(1, new Date(now + SECOND_MS));
  return time?.getTime() ?? -Infinity;
}

/** Returns the first time of the pattern after `now`; Infinity if there is none. */
function next(pattern: string, timezone: string, now: number): number {
  return cron(pattern, timezone).nextRun(new Date(now))?.getTime() ?? Infinity;
}

function cron(pattern: string, timezone: string): Croner.Cron {
  const key = `${timezone} ${pattern}`;
  let parsed = patterns.get(key);
  if (parsed === undefined) {
    // Loaded only for configurations with a schedule.
    const { Cron } = load('croner') as typeof Croner;
    parsed = new Cron(pattern, { timezone, mode: '5-part' });
    if (patterns.size >= MAX_PATTERNS) patterns.clear();
    patterns.set(key, parsed);
  }
  return parsed;
}
