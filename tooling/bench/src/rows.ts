/** Creates table rows from measurements and targets. */

import type { Row } from './table.js';

export const MEBIBYTE = 2 ** 20;

export function row(
  what: string,
  measured: number,
  target: number | undefined,
  format: (value: number) => string,
  existing: string,
  targetIncluded = false,
): Row {
  if (target === undefined) return { what, measured: format(measured), target: '-', existing, met: undefined };
  const met = targetIncluded ? measured <= target : measured < target;
  return { what, measured: format(measured), target: `${targetIncluded ? '≤' : '<'} ${format(target)}`, existing, met };
}

export function plain(value: number): string {
  return String(Number(value.toFixed(2)));
}

export function milliseconds(value: number): string {
  return `${Number(value.toFixed(1))} ms`;
}

export function seconds(value: number): string {
  return `${Number((value / 1000).toFixed(2))} s`;
}

export function percent(value: number): string {
  return `${Number((value * 100).toFixed(2))} %`;
}

export function mebibytes(value: number): string {
  return `${Math.round(value / MEBIBYTE)} MiB`;
}
