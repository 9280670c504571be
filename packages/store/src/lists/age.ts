import type { JsonValue } from '@nodepool/core';
import { cellText } from './cell-text.js';
import type { ListColumn } from './record-list.js';

/** Returns the seconds of an age that `formatAge` formatted; undefined for other values. */
export function parseAge(age: JsonValue): number | undefined {
  if (typeof age !== 'string' || !/^\d+:\d\d:\d\d:\d\d$/.test(age)) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = age.split(':').map(Number);
  return days * 86_400 + hours * 3600 + minutes * 60 + seconds;
}

/** Formats an age as `DD:HH:MM:SS`, with more digits of days if needed. Negative ages (clocks differ) are zero. */
export function formatAge(seconds: number): string {
  const whole = Number.isFinite(seconds) ? Math.max(0, Math.floor(seconds)) : 0;
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor(whole / 3600) % 24;
  const minutes = Math.floor(whole / 60) % 60;
  return [days, hours, minutes, whole % 60].map((part) => String(part).padStart(2, '0')).join(':');
}

/** Returns a column for a time: unix seconds (whole) in JSON, the age in a table. `now` is in milliseconds. */
export function ageColumn<R>(
  field: string,
  header: string,
  now: number,
  timeOf: (row: R) => number | null,
): ListColumn<R> {
  return {
    field,
    header,
    value: (row) => {
      const time = timeOf(row);
      return time === null ? null : Math.floor(time);
    },
    text: (value) => (typeof value === 'number' ? formatAge(now / 1000 - value) : cellText(value)),
    order: (value) => (typeof value === 'number' ? -value : undefined),
  };
}
