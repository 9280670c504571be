/** The key `ready` of labels: its values, its problems, and the number of ready nodes that it asks for. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  formatProblem,
  nextTargetChange,
  QUARTER_MS,
  readyTarget,
  type ReadyForecast,
  type TopLabelConfig,
} from '@nodepool/config';
import { configOf, problemsOf } from './files.js';

const HOUR_MS = 3_600_000;

async function label(text: string): Promise<TopLabelConfig> {
  const config = await configOf(`labels:\n  - ${text}\n`);
  const [found] = config.labels.values();
  if (found === undefined) throw new Error('no label');
  return found;
}

const at = (time: string): number => Date.parse(time);
const NOON = at('2026-01-07T12:00:00Z');

const forecastOf = (...counts: number[]): ReadyForecast => ({ from: NOON, counts, leadMs: 120_000 });

describe('ready', () => {
  it('is valid as the documentation shows it', async () => {
    const page = readFileSync(join(__dirname, '../../../docs/ready-nodes.md'), 'utf8');
    const [, text = ''] = /^```yaml\n(.*?)^```/msu.exec(page) ?? [];
    expect((await configOf(text)).labels.get('debian')?.ready?.schedule).toHaveLength(1);
  });

  it('has defaults for every key', async () => {
    const { ready } = await label('{name: a, ready: {}}');
    expect(ready).toEqual({ min: 0, max: Infinity, spare: undefined, schedule: [], forecast: undefined });
  });

  it('reads numbers and percentages', async () => {
    const { ready } = await label(
      '{name: a, ready: {spare: 20%, forecast: {served-at-once: 90.5%, cost-per-idle-hour: 0.3, max-idle-cost: 0.9}}}',
    );
    expect(ready?.spare).toEqual({ share: 0.2 });
    expect(ready?.forecast).toEqual({ servedAtOnce: 0.905, affordable: 3 });
    expect((await label('{name: a, ready: {forecast: true}}')).ready?.forecast).toEqual({
      servedAtOnce: 0.95,
      affordable: Infinity,
    });
    expect((await label('{name: a, ready: {forecast: false}}')).ready?.forecast).toBeUndefined();
  });

  it('names the place and the reason of each problem', async () => {
    const problems = await problemsOf(`labels:
  - name: a
    ready:
      min: 3
      max: 2
      spare: 5 percent
      schedule:
        - {cron: "0 8 * *", min: 1}
        - {cron: "0 8 30 2 *", min: 1}
        - {cron: "0 8 * * *", timezone: Europe/Bonn, min: 1}
        - {cron: "0 8 * * *", until: "0 99 * * *", max: 1}
        - {cron: "0 8 * * *"}
      forecast: {served-at-once: 100%, max-idle-cost: 3}
`);
    expect(problems.map((problem) => formatProblem(problem).replace(/^[^:]*:/, ''))).toEqual([
      '5:12: labels[0].ready.max: expected a number of at least `min`, 3, found 2',
      '6:14: labels[0].ready.spare: expected a whole number or a percentage, e.g. "20%", found "5 percent"',
      '8:18: labels[0].ready.schedule[0].cron: expected a cron pattern of five fields, e.g. "0 8 * * mon-fri", found "0 8 * *"; invalid configuration format (\'0 8 * *\'), exactly five, six, or seven space separated parts are required',
      '9:18: labels[0].ready.schedule[1].cron: expected a cron pattern of five fields, e.g. "0 8 * * mon-fri", found "0 8 30 2 *"; no date matches it',
      '10:41: labels[0].ready.schedule[2].timezone: expected a time zone, e.g. "Europe/Berlin" or "UTC", found "Europe/Bonn"',
      '11:38: labels[0].ready.schedule[3].until: expected a cron pattern of five fields, e.g. "0 8 * * mon-fri", found "0 99 * * *"; invalid value for hour: 99',
      '12:11: labels[0].ready.schedule[4]: expected at least one of the keys min, max or spare, found none of them',
      '13:34: labels[0].ready.forecast.served-at-once: expected a percentage of more than "0%" and less than "100%", found "100%"',
      '13:55: labels[0].ready.forecast.max-idle-cost: expected `cost-per-idle-hour` beside it, found none',
    ]);
  });
});

describe('the target', () => {
  it('is min-ready without the key, also for a disabled label', async () => {
    expect(readyTarget(NOON, 9, await label('{name: a, min-ready: 4}'), undefined)).toEqual({
      count: 4,
      reason: 'min-ready',
    });
    expect(readyTarget(NOON, 9, await label('{name: a, min-ready: -1, ready: {min: 3}}'), undefined).count).toBe(0);
  });

  it('is the largest of what the keys ask for, at most max, and says which', async () => {
    const settings = await label('{name: a, min-ready: 2, ready: {min: 3, spare: 5, max: 10, forecast: true}}');
    const target = (inUse: number, forecast?: number): string => {
      const known = forecast === undefined ? undefined : forecastOf(forecast);
      const { count, reason } = readyTarget(NOON, inUse, settings, known);
      return `${count} = ${reason}`;
    };
    expect(target(2)).toBe('7 = 5 spare above 2 in use');
    expect(target(2, 9)).toBe('9 = forecast to serve 95 % at once');
    expect(target(2, 6)).toBe('7 = 5 spare above 2 in use');
    expect(target(8)).toBe('10 = max; without it 13 (5 spare above 8 in use)');
    const few = await label('{name: a, min-ready: 2, ready: {min: 3}}');
    expect(readyTarget(NOON, 8, few, undefined)).toEqual({ count: 3, reason: 'min' });
    const share = await label('{name: a, ready: {spare: 20%}}');
    expect([0, 1, 5, 6, 10].map((inUse) => readyTarget(NOON, inUse, share, undefined).count)).toEqual([0, 1, 1, 2, 2]);
    expect(readyTarget(NOON, 6, share, undefined).reason).toBe('20 % spare for 6 in use');
  });

  it('keeps a forecast within what the cost allows', async () => {
    const settings = await label('{name: a, ready: {forecast: {cost-per-idle-hour: 0.25, max-idle-cost: 1}}}');
    expect(readyTarget(NOON, 0, settings, forecastOf(9))).toEqual({
      count: 4,
      reason: 'max-idle-cost; without it 9 (forecast to serve 95 % at once)',
    });
    expect(readyTarget(NOON, 0, settings, forecastOf(4)).reason).toBe('forecast to serve 95 % at once');
  });

  it('follows a schedule in its time zone, across both changes of daylight saving time', async () => {
    const settings = await label(
      '{name: a, ready: {min: 1, schedule: [{cron: "0 8 * * mon-fri", until: "0 18 * * mon-fri", ' +
        'timezone: Europe/Berlin, min: 30}]}}',
    );
    const count = (time: string): number => readyTarget(at(time), 0, settings, undefined).count;
    // Friday and Monday around the change to summer time, on Sunday 2026-03-29.
    expect([count('2026-03-27T06:59:59Z'), count('2026-03-27T07:00:00Z')]).toEqual([1, 30]);
    expect([count('2026-03-27T16:59:59Z'), count('2026-03-27T17:00:00Z')]).toEqual([30, 1]);
    expect([count('2026-03-29T12:00:00Z'), count('2026-03-30T05:59:59Z')]).toEqual([1, 1]);
    expect([count('2026-03-30T06:00:00Z'), count('2026-03-30T16:00:00Z')]).toEqual([30, 1]);
    // Around the change back, on Sunday 2026-10-25.
    expect([count('2026-10-23T06:00:00Z'), count('2026-10-23T16:00:00Z')]).toEqual([30, 1]);
    expect([count('2026-10-26T06:59:59Z'), count('2026-10-26T07:00:00Z')]).toEqual([1, 30]);
    expect(readyTarget(at('2026-03-30T06:00:00Z'), 0, settings, undefined).reason).toBe(
      'min of the schedule "0 8 * * mon-fri" until "0 18 * * mon-fri" in Europe/Berlin',
    );
  });

  it('follows a schedule whose times the change of daylight saving time skips or repeats', async () => {
    const settings = await label(
      '{name: a, ready: {schedule: [{cron: "30 2 * * *", until: "30 5 * * *", timezone: Europe/Berlin, min: 2}]}}',
    );
    const hours = (day: string): number[] =>
      Array.from({ length: 12 }, (_, index) => at(`${day}T00:15:00Z`) + index * (HOUR_MS / 2)).map(
        (now) => readyTarget(now, 0, settings, undefined).count,
      );
    // 02:30 does not exist: the entry begins an hour later, at 03:30 (01:30 UTC).
    expect(hours('2026-03-29')).toEqual([0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 0]);
    // 02:30 exists twice: the entry begins at the first one (00:30 UTC), and lasts an hour longer.
    expect(hours('2026-10-25')).toEqual([0, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0]);
  });

  it('changes with the last entry of a schedule whose entries have no end', async () => {
    const settings = await label(
      '{name: a, ready: {schedule: [{cron: "0 6 * * *", min: 5, max: 9, spare: 2}, {cron: "0 20 * * *", min: 1}]}}',
    );
    const target = (time: string): string => {
      const { count, reason } = readyTarget(at(time), 8, settings, undefined);
      return `${count} = ${reason}`;
    };
    expect(target('2026-01-07T05:00:00Z')).toBe('1 = min of the schedule "0 20 * * *" in UTC');
    expect(target('2026-01-07T06:00:00Z')).toBe(
      '9 = max of the schedule "0 6 * * *" in UTC; without it 10 (2 spare above 8 in use of the schedule "0 6 * * *" in UTC)',
    );
    expect(target('2026-01-07T20:00:00Z')).toBe('1 = min of the schedule "0 20 * * *" in UTC');
  });

  it('has one time of the next change', async () => {
    const settings = await label(
      '{name: a, ready: {schedule: [{cron: "0 8 * * *", until: "0 18 * * *", min: 3}, {cron: "30 12 * * *", min: 4}]}}',
    );
    const next = (time: string): string =>
      new Date(nextTargetChange(at(time), settings, undefined)).toISOString().slice(0, 16);
    expect(next('2026-01-07T07:59:59Z')).toBe('2026-01-07T08:00');
    expect(next('2026-01-07T08:00:00Z')).toBe('2026-01-07T12:30');
    expect(next('2026-01-07T12:30:00Z')).toBe('2026-01-07T18:00');
    expect(next('2026-01-07T18:00:00Z')).toBe('2026-01-08T08:00');
    expect(nextTargetChange(NOON, await label('{name: a, ready: {min: 3}}'), undefined)).toBe(Infinity);
  });

  it('uses the number of a forecast one boot time before its quarter, and the last one for an hour', async () => {
    const settings = await label('{name: a, ready: {forecast: true}}');
    const forecast = forecastOf(3, 7, 2);
    const count = (offset: number): number => readyTarget(NOON + offset, 0, settings, forecast).count;
    const [lead, end] = [120_000, 3 * QUARTER_MS];
    expect([count(-lead - 1), count(-lead), count(0)]).toEqual([0, 3, 3]);
    expect([count(QUARTER_MS - lead - 1), count(QUARTER_MS - lead)]).toEqual([3, 7]);
    expect([count(2 * QUARTER_MS - 1), count(2 * QUARTER_MS)]).toEqual([7, 2]);
    expect([count(end), count(end + 4 * QUARTER_MS), count(end + 4 * QUARTER_MS + 1)]).toEqual([2, 2, 0]);
    const changes: number[] = [];
    for (let now = NOON - QUARTER_MS; now < Infinity; now = nextTargetChange(now, settings, forecast))
      changes.push(now - NOON);
    for (const [index, change] of changes.entries()) {
      const before = changes[index - 1];
      if (before !== undefined) expect(count(change - 1)).toBe(count(before));
    }
  });
});
