/** OpenStack's formats of ids, times and, in error messages, Python values. */

import type { RandomSource } from '@nodepool/core';

/** Returns a UUID with dashes, as used by nova, glance, neutron and cinder. */
export function newUuid(random: RandomSource): string {
  const hex = random.uuidHex();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Returns e.g. `2026-11-20T15:53:52Z`. */
export function isoSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Returns e.g. `2026-11-20T15:53:52.000000`: whole seconds with zero microseconds, as databases return them. */
export function isoMicros(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}.000000`;
}

/** Formats a JSON value like Python's `repr`. */
export function pythonRepr(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string') return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(', ')}]`;
  if (typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([key, inner]) => `${pythonRepr(key)}: ${pythonRepr(inner)}`)
      .join(', ')}}`;
  }
  return JSON.stringify(value);
}
