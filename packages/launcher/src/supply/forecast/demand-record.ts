/** The demand of a day as JSON, for its znode. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import type { Quarter } from './demand-counter.js';

/** Quarters of an hour per day. */
export const QUARTERS_PER_DAY = 96;

export interface DemandRecord {
  /** Quarters with demand, in their order; the last one may still go on. */
  readonly quarters: readonly Quarter[];
  /** Time from the creation of a node until it is ready (ms); undefined if no node was seen. */
  readonly bootMs: number | undefined;
  /** Sequence number of the last counted request, -1 before the first; undefined if it is unknown. */
  readonly lastRequest: number | undefined;
}

export function encodeDemand({ quarters, bootMs, lastRequest }: DemandRecord): JsonObject {
  return {
    quarters: quarters.map(({ index, demand, gains }) => [index, demand, [...gains]]),
    ...(bootMs === undefined ? {} : { boot: Math.round(bootMs) / 1000 }),
    ...(lastRequest === undefined ? {} : { last_request: lastRequest }),
  };
}

/** Ignores what it cannot read. */
export function decodeDemand(data: JsonObject): DemandRecord {
  const { quarters, boot, last_request: lastRequest } = data;
  return {
    quarters: listOf(quarters).flatMap((each) => decodeQuarter(each) ?? []),
    bootMs: isCount(boot) ? boot * 1000 : undefined,
    lastRequest: typeof lastRequest === 'number' ? lastRequest : undefined,
  };
}

function decodeQuarter(value: JsonValue): Quarter | undefined {
  if (!Array.isArray(value)) return undefined;
  const [index, demand, gains] = value as readonly (JsonValue | undefined)[];
  if (!isCount(index) || !isCount(demand) || !Array.isArray(gains)) return undefined;
  return { index, demand, gains: (gains as readonly JsonValue[]).map((gain) => (typeof gain === 'number' ? gain : 0)) };
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
