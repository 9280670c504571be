/** Reads error answers of a cloud with a table of its codes, and tells the outcome of each kind of failure. */

import type { Attempted } from './api-request.js';
import type { DriverErrorCode, Outcome } from './error-codes.js';
import type { DriverError, DriverErrorOptions } from './errors.js';
import { CertificateError, driverError, isDriverError, ThrottledError, TransientError } from './errors.js';
import { headerIn, type AnswerHeaders } from './http-exchange.js';
import { certificateAdvice, networkCauseOf } from './network-errors.js';
import { retryAfterMsIn } from './retry-after.js';

/** An error answer. */
export interface ErrorAnswer {
  /** HTTP status; undefined if the SDK does not tell it. */
  readonly status?: number | undefined;
  /** The vendor's code of the error. */
  readonly code?: string | undefined;
  /** The vendor's text. */
  readonly text: string;
  /** The part of messages after the status. Default: code and text. */
  readonly summary?: string;
  readonly headers?: AnswerHeaders | undefined;
  /** The wait that the answer demands (ms). Default: that of its header `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** An answer, and the outcome of its call if the vendor has not sent it. */
export interface DoubtfulAnswer extends ErrorAnswer {
  readonly unanswered: Outcome;
}

/** Creates an error, e.g. of a class of the driver's own. */
export type MakeError = (message: string, options: DriverErrorOptions, answer: DoubtfulAnswer) => DriverError;

interface Conditions {
  /** A status, or an expression for its three digits. */
  readonly status?: number | RegExp;
  readonly code?: RegExp | ReadonlySet<string>;
  readonly text?: RegExp;
}

interface Consequence {
  readonly error: DriverErrorCode | MakeError;
  /** Added to the message: what the operator can do. */
  readonly hint?: string;
  /** Default: that of the error's code; `transient`: `not-applied` for a call that changes nothing. */
  readonly outcome?: Outcome;
}

/** A rule applies if all its conditions do. */
export type ErrorRule =
  | (Conditions & Consequence & { readonly error: Exclude<DriverErrorCode, 'not-found'> | MakeError })
  // A status 404 proves nothing: a proxy answers with it, too.
  | (Conditions &
      Consequence & { readonly error: 'not-found' } & ({ code: RegExp | ReadonlySet<string> } | { text: RegExp }));

/** The meaning of a vendor's errors. */
export interface ErrorTable {
  /** The first rule that applies counts. */
  readonly rules: readonly ErrorRule[];
  /** Name of the cloud in questions, e.g. `Google Cloud`. */
  readonly vendor: string;
  /** Wait after throttled calls if the cloud does not specify one (ms). */
  readonly retryAfterMs: number;
}

/** Returns the `DriverError` for an error answer: by the table, or else by the usual meaning of its status. */
export function errorOfAnswer(table: ErrorTable, answer: ErrorAnswer, attempted: Attempted): DriverError {
  const { status, headers, cause } = answer;
  const summary = answer.summary ?? [answer.code, answer.text].filter(Boolean).join(': ');
  const message = `${attempted.operation}: ${status === undefined ? '' : `${status} `}${summary}`;
  const ofHeader = headers === undefined ? undefined : retryAfterMsIn(headerIn(headers, 'retry-after'), attempted.now);
  const retryAfterMs = answer.retryAfterMs ?? ofHeader ?? attempted.retryAfterMs;
  const rule = table.rules.find((each) => applies(each, answer)) ?? usualRule(table, status ?? 0);
  const { error, hint = '' } = rule;
  const text = message + hint;
  const unanswered = outcomeOf(attempted);
  const options = { cause, retryAfterMs, ...(rule.outcome === undefined ? {} : { outcome: rule.outcome }) };
  if (typeof error === 'function') return error(text, options, { ...answer, unanswered });
  if (error === 'throttled') {
    return new ThrottledError(text, { ...options, retryAfterMs: retryAfterMs ?? table.retryAfterMs });
  }
  if (error === 'transient') return new TransientError(text, { outcome: unanswered, ...options });
  return driverError(error, text, options);
}

function applies({ status, code, text }: Conditions, answer: ErrorAnswer): boolean {
  if (status !== undefined && !hasStatus(status, answer.status ?? 0)) return false;
  if (code !== undefined && !matches(code, answer.code ?? '')) return false;
  return text === undefined || text.test(answer.text);
}

function hasStatus(condition: number | RegExp, status: number): boolean {
  return typeof condition === 'number' ? condition === status : condition.test(String(status));
}

function matches(condition: RegExp | ReadonlySet<string>, value: string): boolean {
  return condition instanceof RegExp ? condition.test(value) : condition.has(value);
}

/** The usual meaning of a status. */
const USUAL: readonly ErrorRule[] = [
  { status: 401, error: 'auth' },
  { status: 403, error: 'auth', hint: '; the account needs a role that allows it' },
  { status: 429, error: 'throttled' },
  { status: /^(5..|408)$/, error: 'transient' },
  { status: /^4(09|12)$/, error: 'conflict' },
  { status: /^4/, error: 'unexpected', outcome: 'not-applied' },
];

function usualRule({ vendor }: ErrorTable, status: number): Consequence {
  const hint = `; is this an answer of ${vendor}?`;
  // It proves nothing without a code of the vendor.
  if (status === 404 || status === 410) return { error: 'transient', hint };
  return USUAL.find((rule) => applies(rule, { status, text: '' })) ?? { error: 'unexpected', hint };
}

export interface FailedConnection {
  readonly cause: unknown;
  /** Address of the cloud in messages. */
  readonly to?: string | undefined;
  /** Setting with the trusted certificates, in messages. Default: `NODE_EXTRA_CA_CERTS`. */
  readonly trust?: string;
}

const TRUST = 'NODE_EXTRA_CA_CERTS in the environment of the launcher';

/** Returns the `DriverError` for anything that a transport throws other than an answer. */
export function connectionError(attempted: Attempted, { cause, to, trust = TRUST }: FailedConnection): DriverError {
  if (isDriverError(cause)) return cause;
  const { operation } = attempted;
  const network = networkCauseOf(cause);
  const reason = network?.systemCode ?? (cause instanceof Error ? lineOf(cause.message) : String(cause));
  const where = to === undefined ? '' : ` to ${to}`;
  if (network?.code === 'certificate') {
    const advice = certificateAdvice(network.systemCode, trust);
    return new CertificateError(`${operation}: the certificate of ${to ?? 'the cloud'} ${advice}`, { cause });
  }
  if (network?.outcome === 'not-applied') {
    return new TransientError(`${operation}: cannot connect${where} (${reason})`, { cause, outcome: 'not-applied' });
  }
  return new TransientError(`${operation}: the connection${where} broke before the answer came (${reason})`, {
    cause,
    outcome: outcomeOf(attempted),
  });
}

function outcomeOf({ changesSomething }: Attempted): Outcome {
  return changesSomething ? 'unknown' : 'not-applied';
}

/** Maximum length of a text in messages (characters). */
const MAX_TEXT = 500;

/** Returns a text of a cloud as one line, shortened for messages. */
export function lineOf(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_TEXT);
}
