/**
 * From what OpenStack says to what core understands: the statuses and bodies of answers, the failures of connections, and
 * the faults of servers in ERROR.
 *
 * The services agree on few things; what a refusal means is often said by its wording only. The wordings are those of
 * nova, neutron, cinder and glance since about 2016.
 */

import {
  AuthError,
  CapacityError,
  ConfigurationError,
  ConflictError,
  DriverError,
  InstanceFailedError,
  isDriverError,
  isJsonObject,
  networkCauseOf,
  NotFoundError,
  QuotaError,
  stringAt,
  ThrottledError,
  TransientError,
  type JsonObject,
} from '@nodepool/core';
import { jsonOf } from './client/answers.js';
import type { HttpAnswer } from './client/transport.js';

/** More than this of what a cloud says is of no use to a reader. */
const MAX_DETAIL = 500;

/** Longest wait that a cloud can demand of us. */
const MAX_RETRY_AFTER_MS = 600_000;
/** How long to leave a cloud alone that does not say so. */
const DEFAULT_RETRY_AFTER_MS = 5000;

const QUOTA =
  /quota|limit ?exceeded|over the limit|(maximum|max) number of (?!retries).*(exceeded|allowed)|exceeds (allowed|available)|overlimit|too many instances/i;
const CAPACITY =
  /no valid host|exceeded max(imum number of retries| scheduling attempts)|no more (ip addresses|fixed ips?)|zero fixed ips|insufficient (compute )?resources|not enough (host )?(capacity|resources)|no suitable host/i;
/** The services let a call in only after they have asked keystone, so such a call had no effect. */
const KEYSTONE_AWAY = /keystone service is temporarily unavailable/i;

/** What a refused creation names wrongly. */
const SUBJECTS: readonly (readonly [subject: Subject, wording: RegExp])[] = [
  [
    'image',
    /can ?not find requested image|image .*(could not be found|not found|not active|unacceptable)|invalid image|imageref/i,
  ],
  ['flavor', /flavor .*(could not be found|not found)|invalid flavorref/i],
  [
    'network',
    /network .*(could not be found|not found)|networks? .*(ambiguous|not usable)|bad networks? format|multiple possible networks|requires a subnet/i,
  ],
  ['key', /invalid key_name|key ?pair .*not found/i],
  ['zone', /availability zone/i],
  ['security group', /security group .*not found|unable to find security_group/i],
  ['volume', /block device mapping is invalid|volume .*too small|flavor's disk is too small|disk is smaller/i],
];

export type Subject = 'image' | 'flavor' | 'network' | 'key' | 'zone' | 'security group' | 'volume';

/** The cloud refuses what a server shall be made from. A name that was looked up earlier may mean something else by now. */
export class RefusedError extends ConfigurationError {
  constructor(
    readonly subject: Subject,
    message: string,
  ) {
    super(message);
  }
}

/** What a failed call was, for messages: `compute: POST servers`. */
export interface Attempted {
  readonly operation: string;
  /** It can have taken effect although it failed. */
  readonly changesSomething: boolean;
  /** Milliseconds since the epoch, for dates in answers. */
  readonly now: number;
}

/** An answer with an error status, as core understands it. */
export function errorOf(attempted: Attempted, answer: HttpAnswer): DriverError {
  const { status } = answer;
  const detail = detailOf(answer);
  const message = `${attempted.operation}: ${status} ${detail}`;
  if (status === 401) return new AuthError(message);
  if (status === 404 || status === 410) return new NotFoundError(message);
  if (status === 429 || status === 413 || status === 503) return refusedForLoad(attempted, answer, message, detail);
  if (status >= 500)
    return new TransientError(message, { outcome: attempted.changesSomething ? 'unknown' : 'not-applied' });
  if (status >= 400) return refusal(status, message, detail);
  return new DriverError('unexpected', `${message}; is this the endpoint of an OpenStack service?`);
}

function refusedForLoad(attempted: Attempted, answer: HttpAnswer, message: string, detail: string): DriverError {
  const { status } = answer;
  const retryAfterMs = retryAfterOf(answer, attempted.now);
  // Block storage and images say with 413 what the others say with 403.
  if (status === 413 && QUOTA.test(detail) && !/rate.?limit/i.test(detail)) return new QuotaError(message);
  if (status !== 503 || retryAfterMs !== undefined || KEYSTONE_AWAY.test(detail)) {
    return new ThrottledError(message, { retryAfterMs: retryAfterMs ?? DEFAULT_RETRY_AFTER_MS });
  }
  return new TransientError(message, { outcome: attempted.changesSomething ? 'unknown' : 'not-applied' });
}

function refusal(status: number, message: string, detail: string): DriverError {
  if (QUOTA.test(detail)) return new QuotaError(message);
  if (CAPACITY.test(detail)) return new CapacityError(message);
  const subject = SUBJECTS.find(([, wording]) => wording.test(detail))?.[0];
  if (subject !== undefined && (status === 400 || /multiple possible networks/i.test(detail))) {
    const hint = /multiple possible networks/i.test(detail)
      ? '; name those to use in "networks" of the pool, or mark one with default_interface in clouds.yaml'
      : '';
    return new RefusedError(subject, message + hint);
  }
  if (status === 409) return new ConflictError(message);
  if (status === 403) return new AuthError(`${message}; the account needs a role that allows it`);
  return new DriverError('unexpected', message, { outcome: 'not-applied' });
}

/** Milliseconds that the answer asks to wait: seconds, or a date. */
function retryAfterOf({ headers, text }: HttpAnswer, now: number): number | undefined {
  const value = headers['retry-after'] ?? /"retryAfter": ?"?(\d+)/.exec(text)?.[1];
  if (value === undefined) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? DEFAULT_RETRY_AFTER_MS : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

/** What the answer says, in one line. */
export function detailOf(answer: HttpAnswer): string {
  const body = jsonOf(answer);
  const said = isJsonObject(body) ? messageIn(body) : textOfHtml(answer.text);
  return said.replace(/\s+/g, ' ').trim().slice(0, MAX_DETAIL);
}

/** `{"badRequest": {"message": …}}`, `{"NeutronError": {"type", "message"}}`, `{"error": {"message"}}`, `{"errors": [{"detail"}]}`, `{"message": …}`. */
function messageIn(body: JsonObject): string {
  for (const value of [body, ...Object.values(body)]) {
    const [inner] = Array.isArray(value) ? (value as readonly unknown[]) : [value];
    if (!isJsonObject(inner)) continue;
    const message = stringAt(inner, 'message') ?? stringAt(inner, 'detail') ?? stringAt(inner, 'title');
    if (message === undefined) continue;
    const type = stringAt(inner, 'type');
    return type === undefined ? message : `${type}: ${message}`;
  }
  const [text] = Object.values(body).filter((value) => typeof value === 'string');
  return text ?? JSON.stringify(body);
}

/** Proxies, and glance, answer with pages for people. */
function textOfHtml(text: string): string {
  return text
    .replace(/<(style|script|title)\b.*?<\/\1>/gis, ' ')
    .replace(/<[^>]*>/g, ' ')
    .slice(0, 4 * MAX_DETAIL);
}

/** A failure of the connection, as core understands it. */
export function connectionErrorOf(attempted: Attempted, url: string, error: unknown): DriverError {
  if (isDriverError(error)) return error;
  const { origin } = new URL(url);
  const { operation, changesSomething } = attempted;
  const network = networkCauseOf(error);
  const reason = network?.systemCode ?? (error instanceof Error ? error.message : String(error));
  if (network?.code === 'configuration') {
    const message = `${operation}: ${origin} shows a certificate that is not trusted (${reason}); see "cacert" and "verify" in clouds.yaml`;
    return new ConfigurationError(message, { cause: error });
  }
  if (network?.outcome === 'not-applied') {
    const message = `${operation}: cannot connect to ${origin} (${reason})`;
    return new TransientError(message, { cause: error, outcome: 'not-applied' });
  }
  return new TransientError(`${operation}: the connection to ${origin} broke before the answer came (${reason})`, {
    cause: error,
    outcome: changesSomething ? 'unknown' : 'not-applied',
  });
}

/** A server in ERROR, with its fault message, as core understands it. It exists, and has to be deleted. */
export function faultError(serverId: string, fault: string): DriverError {
  const message = `server ${serverId} went to ERROR: ${fault}`;
  if (QUOTA.test(fault)) return new QuotaError(message, { outcome: 'applied' });
  if (CAPACITY.test(fault)) return new CapacityError(message, { outcome: 'applied' });
  return new InstanceFailedError(message);
}
