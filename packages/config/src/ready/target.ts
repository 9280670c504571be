/** The number of ready nodes that a label should have, with the reason. */

import type { TopLabelConfig } from '../types.js';
import { scheduleAt } from './schedule.js';
import type { ForecastSettings, ReadySettings, ScheduleEntry, Spare } from './settings.js';

export interface ReadyTarget {
  readonly count: number;
  /** E.g. `5 spare above 2 in use`. */
  readonly reason: string;
}

/** Length of the steps of a forecast (ms). */
export const QUARTER_MS = 900_000;
/** Time (ms) for which the last number of a forecast is used if the next forecast does not come. */
const STALE_MS = 4 * QUARTER_MS;

/** The forecast of a label's demand, as the launcher that is elected for the label publishes it. */
export interface ReadyForecast {
  /** Start of the first quarter of an hour, milliseconds since the epoch. */
  readonly from: number;
  /** Numbers of ready nodes for this quarter and the next ones. */
  readonly counts: readonly number[];
  /** Time before its quarter from which on a number is used: that of the boot of a node, in milliseconds. */
  readonly leadMs: number;
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
  if (ready.forecast !== undefined) candidates.push(forecastTarget(now, ready.forecast, forecast));
  for (const candidate of candidates) if (candidate.count > target.count) target = candidate;
  if (target.count <= max.value) return target;
  return { count: max.value, reason: `max${max.origin}; without it ${target.count} (${target.reason})` };
}

/** Returns the time (ms since the epoch) at which the target may change without a change of use; Infinity if never. */
export function nextTargetChange(
  now: number,
  { ready }: Pick<TopLabelConfig, 'ready'>,
  forecast: ReadyForecast | undefined,
): number {
  const times = ready === undefined || ready.schedule.length === 0 ? [] : [scheduleAt(ready.schedule, now).until];
  if (ready?.forecast !== undefined && forecast !== undefined) times.push(...forecastChanges(forecast));
  return Math.min(Infinity, ...times.filter((time) => time > now));
}

/** A value with the entry of the schedule that it comes from, as the end of a reason. */
interface Effective<T> {
  readonly value: T;
  readonly origin: string;
}

interface EffectiveSettings {
  readonly min: Effective<number>;
  readonly max: Effective<number>;
  readonly spare: Effective<Spare | undefined>;
}

function settingsAt({ schedule, min, max, spare }: ReadySettings, now: number): EffectiveSettings {
  const applying = schedule.length === 0 ? [] : scheduleAt(schedule, now).applying;
  return {
    min: effective(applying, (entry) => entry.min, min),
    max: effective(applying, (entry) => entry.max, max),
    spare: effective(applying, (entry) => entry.spare, spare),
  };
}

function effective<T>(
  applying: readonly ScheduleEntry[],
  valueOf: (entry: ScheduleEntry) => T | undefined,
  otherwise: T,
): Effective<T> {
  const entry = applying.findLast((each) => valueOf(each) !== undefined);
  const value = entry === undefined ? undefined : valueOf(entry);
  return entry === undefined || value === undefined
    ? { value: otherwise, origin: '' }
    : { value, origin: ` of the schedule ${describeEntry(entry)}` };
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

function forecastTarget(
  now: number,
  { servedAtOnce, affordable }: ForecastSettings,
  forecast: ReadyForecast | undefined,
): ReadyTarget {
  const count = forecast === undefined ? undefined : forecastCount(now, forecast);
  if (count === undefined) return { count: 0, reason: 'there is no forecast yet' };
  const reason = `forecast to serve ${Math.round(servedAtOnce * 1000) / 10} % at once`;
  return count <= affordable
    ? { count, reason }
    : { count: affordable, reason: `max-idle-cost; without it ${count} (${reason})` };
}

/** Returns the largest number of the quarters that begin within the lead; undefined if the forecast is too old. */
function forecastCount(now: number, { from, counts, leadMs }: ReadyForecast): number | undefined {
  const first = Math.floor((now - from) / QUARTER_MS);
  const last = Math.floor((now + leadMs - from) / QUARTER_MS);
  if (last < 0 || now - from - counts.length * QUARTER_MS > STALE_MS) return undefined;
  const end = counts.length - 1;
  return Math.max(0, ...counts.slice(Math.max(0, Math.min(first, end)), last + 1));
}

/** Returns the times at which the number of a forecast can change. */
function forecastChanges({ from, counts, leadMs }: ReadyForecast): number[] {
  const starts = counts.map((_, index) => from + index * QUARTER_MS);
  return [...starts, ...starts.map((start) => start - leadMs), from + counts.length * QUARTER_MS + STALE_MS + 1];
}
