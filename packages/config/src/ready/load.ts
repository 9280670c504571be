/** Reads the key `ready` of a label. */

import { entriesAt, isJsonObject, numberAt, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import type { KeyPath } from '../problems.js';
import type { ProblemText } from '../report.js';
import { isTimezone, patternProblem } from './schedule.js';
import type { ForecastSettings, ReadySettings, ScheduleEntry, Spare } from './settings.js';
import { DEFAULT_SERVED_AT_ONCE } from './settings.js';

/** Reports a problem at a path. */
export type Report = (path: KeyPath, problem: ProblemText) => void;

/** Returns undefined without the key. Paths of problems start at the label. */
export function loadReady(label: JsonObject, report: Report): ReadySettings | undefined {
  const section = objectAt(label, 'ready');
  if (section === undefined) return undefined;
  const settings = {
    min: numberAt(section, 'min') ?? 0,
    max: numberAt(section, 'max') ?? Infinity,
    spare: spareAt(section),
    schedule: scheduleOf(section, (path, problem) => report(['ready', 'schedule', ...path], problem)),
    forecast: forecastOf(section, report),
  };
  if (settings.min > settings.max) {
    report(['ready', 'max'], { expected: `a number of at least \`min\`, ${settings.min}` });
  }
  return settings;
}

function spareAt(section: JsonObject): Spare | undefined {
  const nodes = numberAt(section, 'spare');
  if (nodes !== undefined) return { nodes };
  const text = stringAt(section, 'spare');
  return text === undefined ? undefined : { share: percentOf(text) };
}

function scheduleOf(section: JsonObject, report: Report): ScheduleEntry[] {
  return entriesAt(section, 'schedule').map(({ index, section: entry }) => {
    const timezone = stringAt(entry, 'timezone') ?? 'UTC';
    if (!isTimezone(timezone)) {
      report([index, 'timezone'], { expected: 'a time zone, e.g. "Europe/Berlin" or "UTC"' });
    }
    const texts = { cron: stringAt(entry, 'cron') ?? '', until: stringAt(entry, 'until') };
    for (const [key, pattern] of Object.entries(texts)) {
      const problem = pattern === undefined || pattern === '' ? undefined : patternProblem(pattern);
      if (problem === undefined) continue;
      report([index, key], { expected: 'a cron pattern of five fields, e.g. "0 8 * * mon-fri"', hint: problem });
    }
    const [min, max, spare] = [numberAt(entry, 'min'), numberAt(entry, 'max'), spareAt(entry)];
    return {
      ...texts,
      timezone,
      ...(min === undefined ? {} : { min }),
      ...(max === undefined ? {} : { max }),
      ...(spare === undefined ? {} : { spare }),
    };
  });
}

function forecastOf({ forecast }: JsonObject, report: Report): ForecastSettings | undefined {
  if (forecast === true) return { servedAtOnce: DEFAULT_SERVED_AT_ONCE, affordable: Infinity };
  if (!isJsonObject(forecast)) return undefined;
  const share = stringAt(forecast, 'served-at-once');
  const [cost, mostCost] = [numberAt(forecast, 'cost-per-idle-hour'), numberAt(forecast, 'max-idle-cost')];
  if (cost === undefined && mostCost !== undefined) {
    report(['ready', 'forecast', 'max-idle-cost'], { expected: '`cost-per-idle-hour` beside it', found: 'none' });
  }
  return {
    servedAtOnce: share === undefined ? DEFAULT_SERVED_AT_ONCE : percentOf(share),
    affordable: cost === undefined || mostCost === undefined ? Infinity : Math.floor(mostCost / cost + 1e-9),
  };
}

function percentOf(text: string): number {
  return Number.parseFloat(text) / 100;
}
