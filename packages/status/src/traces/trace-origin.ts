/** Reads the trace that a request belongs to from the data of its requestor. */

import type { SpanOrigin } from '@nodepool/core';

/** Format of the W3C trace context, version 00. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const SAMPLED = 1;

interface Unchecked {
  readonly [name: string]: unknown;
}

/**
 * Returns the span of the requestor; undefined if its record names none. Zuul writes `span_info` with ids of 128 and 64
 * bits as integers. `JSON.parse` would round them, so the text of the record is read. Other requestors write
 * `traceparent`.
 */
export function traceOriginIn(record: Uint8Array): SpanOrigin | undefined {
  const text = new TextDecoder().decode(record);
  if (!text.includes('span_info') && !text.includes('traceparent')) return undefined;
  const parsed: unknown = JSON.parse(text, withExactNumbers);
  if (!isObject(parsed)) return undefined;
  const data = parsed['requestor_data'];
  if (!isObject(data)) return originIn(parsed);
  const ofLease = data['data'];
  return originIn(data) ?? (isObject(ofLease) ? originIn(ofLease) : undefined) ?? originIn(parsed);
}

/** Keeps integers that a number cannot represent as their digits. The third parameter is missing in older typings. */
function withExactNumbers(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;
}

function originIn({ span_info: info, traceparent }: Unchecked): SpanOrigin | undefined {
  if (typeof traceparent === 'string') {
    const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent) ?? [];
    if (traceId !== '') return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
  }
  if (!isObject(info)) return undefined;
  const { trace_id: trace, span_id: span, trace_flags: flags } = info;
  const [traceId, spanId] = [hex(trace, 32), hex(span, 16)];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, sampled: flags === undefined || (Number(flags) & SAMPLED) !== 0 };
}

/** Returns an id in hexadecimal digits; undefined if it is none, or 0. */
function hex(id: unknown, digits: number): string | undefined {
  if (typeof id !== 'number' && (typeof id !== 'string' || !/^[0-9]+$/.test(id))) return undefined;
  if (typeof id === 'number' && (!Number.isSafeInteger(id) || id <= 0)) return undefined;
  const text = BigInt(id).toString(16).padStart(digits, '0');
  return text.length === digits && !/^0+$/.test(text) ? text : undefined;
}

function isObject(value: unknown): value is Unchecked {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
