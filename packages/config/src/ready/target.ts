/** The number of ready nodes that a label should have, with the reason. */

import type { TopLabelConfig } from '../types.js';
import { scheduleAt } from './schedule.js';
import type { ReadySettings, ScheduleEntry, Spare } from './settings.js';

export interface ReadyTarget {
  readonly count: number;
  /** E.g. `5 spare above 2 in use`. */
  readonly reason: string;
}

/** The forecast of a label's demand, as the launcher that is elected for the label publishes it. */
export interface ReadyForecast {
  /** Number of ready nodes that serves the configured share of requests at once. */
  readonly count: number;
  /** Reason for the number. */
  readonly reason: string;
}

/**
 * Returns the number of ready nodes of a label at a time in milliseconds since the epoch: the largest of `min-ready`,
 * `min`, what `spare` adds to the nodes in use, and the forecast, at most `max`.
 */
export function readyTarget(
  now: number,
  inUse: number,
  { minReady, ready }: Pick<TopLabelConfig, 'minReady' | 'ready'>,
  forecast: ReadyForecast | undefined,
): ReadyTarget {
  if (minReady < 0) return { count: 0, reason: 'the label is disabled' };
  if (ready === undefined) return { count: minReady, reason: 'min-ready' };
  const { min, max, spare } = settingsAt(ready, now);
  let target: ReadyTarget = { count: min.value, reason: `min${min.origin}` };
  const candidates: ReadyTarget[] = [{ count: minReady, reason: 'min-ready' }];
  if (spare.value !== undefined) candidates.push(spareTarget(spare.value, inUse, spare.origin));
  if (ready.forecast !== undefined) candidates.push(forecastTarget(forecast, ready.forecast.affordable));
  for (const candidate of candidates) if (candidate.count > target.count) target = candidate;
  if (target.count <= max.value) return target;
  return { count: max.value, reason: `max${max.origin}; without it ${target.count} (${target.reason})` };
}

/** Returns the time (ms since the epoch) at which the schedule changes the target next; Infinity if it never does. */
export function nextScheduleChange({ ready }: Pick<TopLabelConfig, 'ready'>, now: number): number {
  return ready === undefined || ready.schedule.length === 0 ? Infinity : scheduleAt(ready.schedule, now).until;
}

/** A value with the entry of the schedule that it comes from, as the end of a reason. */
interface Effective<T> {
  readonly value: T;
  readonly origin: string;
}

function settingsAt(
  { schedule, ...always }: ReadySettings,
  now: number,
): { readonly [K in 'min' | 'max' | 'spare']: Effective<ReadySettings[K]> } {
  const applying = schedule.length === 0 ? [] : scheduleAt(schedule, now).applying;
  const effective = <K extends 'min' | 'max' | 'spare'>(key: K): Effective<ReadySettings[K]> => {
    const entry = applying.findLast((each) => each[key] !== undefined);
    const value: ReadySettings[K] | undefined = entry?.[key];
    return entry === undefined || value === undefined
      ? { value: always[key], origin: '' }
      : { value, origin: ` of the schedule ${describeEntry(entry)}` };
  };
  return { min: effective('min'), max: effective('max'), spare: effective('spare') };
}

function describeEntry({ cron, until, timezone }: ScheduleEntry): string {
  return `"${cron}"${until === undefined ? '' : ` until "${until}"`} in ${timezone}`;
}

function spareTarget(spare: Spare, inUse: number, origin: string): ReadyTarget {
  if ('nodes' in spare)
    return { count: inUse + spare.nodes, reason: `${spare.nodes} spare above ${inUse} in use${origin}` };
  const percent = Math.round(spare.share * 1000) / 10;
  return { count: Math.ceil(inUse * spare.share - 1e-9), reason: `${percent} % spare for ${inUse} in use${origin}` };
}

function forecastTarget(forecast: ReadyForecast | undefined, affordable: number): ReadyTarget {
  if (forecast === undefined) return { count: 0, reason: 'no forecast yet' };
  const { count, reason } = forecast;
  if (count <= affordable) return forecast;
  return { count: affordable, reason: `max-idle-cost; without it ${count} (${reason})` };
}
