/** Tests of the trace context in the records of requests. */

import { expect, it } from '@jest/globals';
import { traceOriginIn } from '../src/traces/trace-origin.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const ORIGIN = { traceId: TRACE, spanId: SPAN, sampled: true };

it('the ids of Zuul are integers of 128 and 64 bits, which are read exactly', () => {
  const info = `{"trace_id": ${BigInt(`0x${TRACE}`)}, "span_id": ${BigInt(`0x${SPAN}`)}, "trace_flags": 1}`;
  expect(traceOriginIn(bytes(`{"requestor_data": {"span_info": ${info}, "job_name": "unit"}}`))).toEqual(ORIGIN);
  expect(traceOriginIn(bytes(`{"span_info": ${info}, "requestor_data": null}`))).toEqual(ORIGIN);
});

it('other requestors write the header traceparent', () => {
  const data = (flags: string): string => `{"requestor_data": {"traceparent": "00-${TRACE}-${SPAN}-${flags}"}}`;
  expect(traceOriginIn(bytes(data('01')))).toEqual(ORIGIN);
  expect(traceOriginIn(bytes(data('00')))).toEqual({ ...ORIGIN, sampled: false });
  const lease = `{"requestor_data": {"lease": "1", "data": {"traceparent": "00-${TRACE}-${SPAN}-01"}}}`;
  expect(traceOriginIn(bytes(lease))).toEqual(ORIGIN);
});

it.each([
  ['{"requestor_data": null}'],
  ['{"requestor_data": {"span_info": null}}'],
  ['{"requestor_data": {"span_info": {"trace": 1}}}'],
  ['{"requestor_data": {"span_info": {"trace_id": 0, "span_id": 1}}}'],
  ['{"requestor_data": {"span_info": {"trace_id": "x", "span_id": 1.5}}}'],
  [`{"requestor_data": {"traceparent": "00-${TRACE}-${SPAN}"}}`],
])('%s names no trace', (text) => {
  expect(traceOriginIn(bytes(text))).toBeUndefined();
});
