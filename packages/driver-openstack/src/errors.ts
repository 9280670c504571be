/**
 * Translates OpenStack failures into errors of core: error statuses, connection failures, and the faults of servers in
 * ERROR.
 *
 * The services have few conventions in common, and often only the wording of an error identifies it. The wordings are
 * those of nova, neutron, cinder and glance since about 2016.
 */

import {
  AuthError,
  CapacityError,
  certificateAdvice,
  CertificateError,
  ConfigurationError,
  ConflictError,
  DriverError,
  InstanceFailedError,
  isDriverError,
  isJsonObject,
  networkCauseOf,
  NotFoundError,
  QuotaError,
  RefusedError,
  retryAfterMsIn,
  stringAt,
  ThrottledError,
  TransientError,
  type JsonObject,
} from '@nodepool/core';
import { jsonOf } from './client/answers.js';
import type { HttpAnswer } from './client/transport.js';

/** Maximum length of a cloud's error text in messages (characters). */
const MAX_DETAIL = 500;

/** Wait if the cloud does not specify one (ms). */
const DEFAULT_RETRY_AFTER_MS = 5000;

const QUOTA =
  /quota|limit ?exceeded|over (a |the )?limit|(maximum|max) number of (?!retries).*(exceeded|allowed)|exceeds (allowed|available)|overlimit|too many instances/i;
const CAPACITY =
  /no valid host|exceeded max(imum number of retries| scheduling attempts)|no more (ip addresses|fixed ips?)|zero fixed ips|no fixed ip addresses|unable to find any ip address|insufficient (compute )?resources|not enough (host )?(capacity|resources)|no suitable host/i;
/** Services validate the token with keystone before they process a call, so a call with this error had no effect. */
const KEYSTONE_AWAY = /keystone service is temporarily unavailable/i;

/** Text of nova, neutron, cinder and glance for a path that they do not know. */
const UNKNOWN_PATH = /The resource could not be found\./;

/** The resource that a refused creation names as invalid. */
const SUBJECTS: readonly (readonly [subject: Subject, wording: RegExp])[] = [
  [
    'image',
    /can ?not find requested image|image .*(could not be found|not found|not active|unacceptable)|invalid image|imageref/i,
  ],
  ['flavor', /flavor .*(could not be found|not found)|invalid flavorref|memory is too small|flavors with zero disk/i],
  [
    'network',
    /network .*(could not be found|not found)|networks? .*(ambiguous|not usable)|bad networks? format|multiple possible networks|requires a subnet|interface on external network/i,
  ],
  ['key', /invalid key_name|key ?pair .*not found/i],
  ['zone', /availability zone/i],
  ['security group', /security group .*not found|unable to find security_group|multiple security groups found/i],
  [
    'volume',
    /block device mapping is invalid|volume .*too small|flavor's disk is too small|disk is smaller|volume is smaller/i,
  ],
  ['attribute', /invalid input for field\/attribute|number of metadata items/i],
];
/** Nova's refusal of a zone that does not exist, or whose hosts are all disabled or down at the moment. */
const ZONE_AWAY = /requested availability zone is not available/i;
/** Refusals with status 403 that depend on the label and not on the account. */
const LABEL_FORBIDDEN = /flavors with zero disk|interface on external network|number of metadata items/i;
/** Refusals with status 409 that a retry does not resolve. */
const AMBIGUOUS = /multiple (possible networks|security groups) found/i;

export type Subject = 'image' | 'flavor' | 'network' | 'key' | 'zone' | 'security group' | 'volume' | 'attribute';

/**
 * An error for a creation whose image, flavor or network the cloud refuses. A cached lookup of the name may be
 * outdated.
 */
export class InvalidResourceError extends ConfigurationError {
  constructor(
    readonly subject: Subject,
    message: string,
  ) {
    super(message);
  }
}

/** A 404 of something before the service, e.g. a proxy. It does not prove that a resource is deleted. */
export class ForeignNotFoundError extends TransientError {}

/** A 404 of a service that does not know the path, e.g. because the catalog has a wrong URL. */
export class UnknownPathError extends ForeignNotFoundError {}

/** A failed call, for messages: `compute: POST servers`. */
export interface Attempted {
  readonly operation: string;
  /** True if the call may have taken effect although it failed. */
  readonly changesSomething: boolean;
  /** Milliseconds since the epoch, to interpret dates in answers. */
  readonly now: number;
}

/** Returns the `DriverError` for an answer with an error status. */
export function errorOf(attempted: Attempted, answer: HttpAnswer): DriverError {
  const { status } = answer;
  const detail = detailOf(answer);
  const message = `${attempted.operation}: ${status} ${detail}`;
  if (status === 401) return new AuthError(message);
  if (status === 404) return lacking(attempted, answer, message);
  if (status === 429 || status === 413 || status === 503) return refusedForLoad(attempted, answer, message, detail);
  if (status >= 500 || status === 408)
    return new TransientError(message, { outcome: attempted.changesSomething ? 'unknown' : 'not-applied' });
  if (status >= 400) return refusal(status, message, detail);
  return new DriverError('unexpected', `${message}; is this the endpoint of an OpenStack service?`);
}

function lacking({ changesSomething }: Attempted, { headers, text }: HttpAnswer, message: string): DriverError {
  const isOfService =
    headers['x-openstack-request-id'] !== undefined || /^\s*\{\s*"(itemNotFound|NeutronError)"/.test(text);
  if (isOfService && !UNKNOWN_PATH.test(text)) return new NotFoundError(message);
  const Kind = isOfService ? UnknownPathError : ForeignNotFoundError;
  return new Kind(`${message}; is this the endpoint of an OpenStack service?`, {
    outcome: changesSomething ? 'unknown' : 'not-applied',
  });
}

function refusedForLoad(attempted: Attempted, answer: HttpAnswer, message: string, detail: string): DriverError {
  const { status } = answer;
  const retryAfterMs = retryAfterOf(answer, attempted.now);
  // Block storage and image services use 413 where the other services use 403.
  if (status === 413 && QUOTA.test(detail) && !/rate.?limit/i.test(detail)) return new QuotaError(message);
  if (status !== 503 || retryAfterMs !== undefined || KEYSTONE_AWAY.test(detail)) {
    return new ThrottledError(message, { retryAfterMs: retryAfterMs ?? DEFAULT_RETRY_AFTER_MS });
  }
  return new TransientError(message, { outcome: attempted.changesSomething ? 'unknown' : 'not-applied' });
}

function refusal(status: number, message: string, detail: string): DriverError {
  if (ZONE_AWAY.test(detail)) return new RefusedError(message);
  if (QUOTA.test(detail)) return new QuotaError(message);
  if (CAPACITY.test(detail)) return new CapacityError(message);
  const subject = SUBJECTS.find(([, wording]) => wording.test(detail))?.[0];
  const isOfLabel = status === 400 || (status === 403 && LABEL_FORBIDDEN.test(detail));
  if (subject !== undefined && (isOfLabel || AMBIGUOUS.test(detail))) {
    const hint = /multiple possible networks/i.test(detail)
      ? '; name those to use in "networks" of the pool, or mark one with default_interface in clouds.yaml'
      : '';
    return new InvalidResourceError(subject, message + hint);
  }
  if (status === 409) return new ConflictError(message);
  if (status === 403) return new AuthError(`${message}; the account needs a role that allows it`);
  return new DriverError('unexpected', message, { outcome: 'not-applied' });
}

/** Returns the wait that the answer demands (ms); the header contains seconds or a date. */
function retryAfterOf({ headers, text }: HttpAnswer, now: number): number | undefined {
  const value = headers['retry-after'] ?? /"retryAfter": ?"?(\d+)/.exec(text)?.[1];
  return value === undefined ? undefined : (retryAfterMsIn(value, now) ?? DEFAULT_RETRY_AFTER_MS);
}

/** Returns the error text of the answer as a single line. */
export function detailOf(answer: HttpAnswer): string {
  const body = jsonOf(answer);
  const said = isJsonObject(body) ? messageIn(body) : textOfHtml(answer.text);
  return said.replace(/\s+/g, ' ').trim().slice(0, MAX_DETAIL);
}

/**
 * Reads `{"badRequest": {"message": …}}`, `{"NeutronError": {"type", "message"}}`, `{"error": {"message"}}`,
 * `{"errors": [{"detail"}]}` and `{"message": …}`.
 */
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

/** Extracts the text of an HTML page, which proxies and glance return. */
function textOfHtml(text: string): string {
  return text
    .replace(/<(style|script|title)\b.*?<\/\1>/gis, ' ')
    .replace(/<[^>]*>/g, ' ')
    .slice(0, 4 * MAX_DETAIL);
}

/** Returns the `DriverError` for a connection failure. */
export function connectionErrorOf(attempted: Attempted, url: string, error: unknown): DriverError {
  if (isDriverError(error)) return error;
  const { origin } = new URL(url);
  const { operation, changesSomething } = attempted;
  const network = networkCauseOf(error);
  const reason = network?.systemCode ?? (error instanceof Error ? error.message : String(error));
  if (network?.code === 'certificate') {
    const advice = certificateAdvice(network.systemCode, '"cacert" and "verify" in clouds.yaml');
    return new CertificateError(`${operation}: the certificate of ${origin} ${advice}`, { cause: error });
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

/** Returns the `DriverError` for the fault of a server in ERROR. The server exists and must be deleted. */
export function faultError(serverId: string, fault: string): DriverError {
  const message = `server ${serverId} went to ERROR: ${fault}`;
  if (QUOTA.test(fault)) return new QuotaError(message, { outcome: 'applied' });
  if (CAPACITY.test(fault)) return new CapacityError(message, { outcome: 'applied' });
  return new InstanceFailedError(message);
}
