/** Error answers, read with a table of a vendor's codes, and failed connections. */

import { describe, expect, it } from '@jest/globals';
import {
  ConflictError,
  connectionError,
  errorOfAnswer,
  NotFoundError,
  QuotaError,
  type Attempted,
  type ErrorTable,
} from '../../src/index.js';

class AlreadyExistsError extends ConflictError {}

const TABLE: ErrorTable = {
  vendor: 'Acme',
  retryAfterMs: 5000,
  rules: [
    { status: 403, code: /^QuotaExceeded/, error: 'quota' },
    { code: new Set(['ServerNotFound']), error: 'not-found' },
    { status: /^4/, text: /network .* not found/i, error: 'configuration', hint: '; see "networks"' },
    { code: /^Exists$/, error: (message, options) => new AlreadyExistsError(message, options) },
    { code: /^Starting$/, error: 'transient', outcome: 'not-applied' },
    { code: /^Busy$/, error: 'throttled' },
  ],
};
const WRITE: Attempted = { operation: 'compute: POST servers', changesSomething: true, now: Date.UTC(2026, 0, 1) };
const READ: Attempted = { ...WRITE, changesSomething: false };

describe('an error answer', () => {
  it.each([
    [403, 'QuotaExceeded', 'quota', 'not-applied'],
    [404, 'ServerNotFound', 'not-found', 'not-applied'],
    [undefined, 'ServerNotFound', 'not-found', 'not-applied'],
    [409, 'Exists', 'conflict', 'not-applied'],
    [500, 'Starting', 'transient', 'not-applied'],
    [400, 'Busy', 'throttled', 'not-applied'],
    // The usual meaning of a status.
    [401, '', 'auth', 'not-applied'],
    [403, 'Other', 'auth', 'not-applied'],
    [404, 'Other', 'transient', 'unknown'],
    [408, '', 'transient', 'unknown'],
    [409, '', 'conflict', 'not-applied'],
    [418, '', 'unexpected', 'not-applied'],
    [429, '', 'throttled', 'not-applied'],
    [502, '', 'transient', 'unknown'],
    [204, '', 'unexpected', 'unknown'],
    [undefined, 'Other', 'unexpected', 'unknown'],
  ] as const)('with status %p and code %p is of kind %s, %s', (status, code, kind, outcome) => {
    expect(errorOfAnswer(TABLE, { status, code, text: 'said so' }, WRITE)).toMatchObject({ code: kind, outcome });
  });

  it('has the class of its kind, or that of the driver', () => {
    const of = (status: number, code: string) => errorOfAnswer(TABLE, { status, code, text: '' }, WRITE);
    expect(of(403, 'QuotaExceeded')).toBeInstanceOf(QuotaError);
    expect(of(404, 'ServerNotFound')).toBeInstanceOf(NotFoundError);
    expect(of(409, 'Exists')).toBeInstanceOf(AlreadyExistsError);
  });

  it('leads to a message with operation, status, code, text and hint', () => {
    const answer = { status: 400, code: 'Invalid', text: 'Network a not found' };
    expect(errorOfAnswer(TABLE, answer, WRITE).message).toBe(
      'compute: POST servers: 400 Invalid: Network a not found; see "networks"',
    );
    expect(errorOfAnswer(TABLE, { status: 404, text: 'no page' }, WRITE).message).toBe(
      'compute: POST servers: 404 no page; is this an answer of Acme?',
    );
  });

  it('to a call that changes nothing is not applied', () => {
    expect(errorOfAnswer(TABLE, { status: 500, text: '' }, READ).outcome).toBe('not-applied');
    expect(errorOfAnswer(TABLE, { status: 404, text: '' }, READ).outcome).toBe('not-applied');
  });

  it.each([
    ['its header', { headers: { 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' } }, {}, 30_000],
    ['its text', { retryAfterMs: 7000, headers: { 'retry-after': '9' } }, {}, 7000],
    ['the exchange', {}, { retryAfterMs: 8000 }, 8000],
    ['the table', {}, {}, 5000],
  ])('demands the wait of %s', (_where, answer, attempted, retryAfterMs) => {
    const failure = errorOfAnswer(TABLE, { status: 429, text: '', ...answer }, { ...WRITE, ...attempted });
    expect(failure).toMatchObject({ code: 'throttled', retryAfterMs });
  });
});

describe('a failed connection', () => {
  const failed = (code: string): Error => Object.assign(new Error('failed'), { code });

  it.each([
    ['ECONNREFUSED', 'transient', 'not-applied', 'cannot connect to https://acme.example (ECONNREFUSED)'],
    ['ECONNRESET', 'transient', 'unknown', 'the connection to https://acme.example broke before the answer came'],
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'certificate',
      'not-applied',
      'is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); see "ca"',
    ],
  ])('with %s is of kind %s, %s', (systemCode, code, outcome, message) => {
    const to = 'https://acme.example';
    const failure = connectionError(WRITE, { cause: failed(systemCode), to, trust: '"ca"' });
    expect(failure).toMatchObject({ code, outcome, message: expect.stringContaining(message) });
  });

  it('of a call that changes nothing is not applied', () => {
    expect(connectionError(READ, { cause: failed('ECONNRESET') })).toMatchObject({ outcome: 'not-applied' });
  });
});
