/** Numbers for people. */

import type { Spread } from './summary.js';

/** Returns seconds in a unit with two or three digits; `never` for an infinite time. */
export function seconds(value: number): string {
  if (value === Infinity) return 'never';
  if (value < 10) return `${round(value, 1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 600) return `${round(value / 60, 1)} min`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return `${round(value / 3600, 1)} h`;
}

export function count(value: number): string {
  return String(Math.round(value));
}

/** Returns an amount, with a decimal if it is small: hours, or an average of numbers. */
export function amount(value: number): string {
  return value < 10 ? String(round(value, 1)) : String(Math.round(value));
}

/** Returns a part of 1 as percent. */
export function percent(value: number): string {
  return `${value > 0 && value < 0.01 ? '<1' : Math.round(value * 100)} %`;
}

/** Returns the median, with the range in brackets if it reads differently; `-` without a value. */
export function withRange(spread: Spread | null, text: (value: number) => string): string {
  if (spread === null) return '-';
  const { median, least, most } = spread;
  if (text(least) === text(most)) return text(median);
  return `${text(median)} (${text(least)}–${text(most)})`;
}

function round(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}
