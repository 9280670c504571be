/**
 * Translates OpenStack failures into errors of core: error statuses, connection failures, and the faults of servers in
 * ERROR.
 *
 * The services have few conventions in common, and often only the wording of an error identifies it. The wordings are
 * those of nova, neutron, cinder and glance since about 2016.
 */

import type { Attempted, DriverError, ErrorTable, JsonObject, MakeError } from '@nodepool/core';
import {
  CapacityError,
  ConfigurationError,
  connectionError,
  errorOfAnswer,
  InstanceFailedError,
  isJsonObject,
  QuotaError,
  retryAfterMsIn,
  stringAt,
  ThrottledError,
  TransientError,
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

/** An error for a creation whose image, flavor or network the cloud refuses: a cached lookup may be outdated. */
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

const ENDPOINT = '; is this the endpoint of an OpenStack service?';
/** Code of answers that a service of the cloud has certainly sent. */
const SERVICE: ReadonlySet<string> = new Set(['service']);

const invalid: MakeError = (message, _options, { text }) =>
  new InvalidResourceError(SUBJECTS.find(([, wording]) => wording.test(text))?.[0] ?? 'attribute', message);

/** A service that demands a wait is overloaded; one that does not may be down. */
const unavailable: MakeError = (message, options, { unanswered: outcome }) =>
  options.retryAfterMs === undefined
    ? new TransientError(message, { ...options, outcome })
    : new ThrottledError(message, options);

const ERRORS: ErrorTable = {
  vendor: 'OpenStack',
  retryAfterMs: DEFAULT_RETRY_AFTER_MS,
  rules: [
    { status: 401, error: 'auth' },
    {
      ...{ status: 404, code: SERVICE, text: UNKNOWN_PATH, hint: ENDPOINT },
      error: (message, options, { unanswered: outcome }) => new UnknownPathError(message, { ...options, outcome }),
    },
    { status: 404, code: SERVICE, error: 'not-found' },
    {
      status: 404,
      error: (message, options, { unanswered: outcome }) => new ForeignNotFoundError(message, { ...options, outcome }),
      hint: ENDPOINT,
    },
    // Block storage and image services use 413 where the other services use 403.
    { status: 413, text: /rate.?limit/i, error: 'throttled' },
    { status: 413, text: QUOTA, error: 'quota' },
    { status: /^(413|429)$/, error: 'throttled' },
    { status: 503, text: KEYSTONE_AWAY, error: 'throttled' },
    { status: 503, error: unavailable },
    { status: /^(5..|408)$/, error: 'transient' },
    { status: /^[123]/, error: 'unexpected', hint: ENDPOINT },
    { text: ZONE_AWAY, error: 'refused' },
    { text: QUOTA, error: 'quota' },
    { text: CAPACITY, error: 'capacity' },
    {
      ...{ status: /^40[09]$/, text: /multiple possible networks/i, error: invalid },
      hint: '; name those to use in "networks" of the pool, or mark one with default_interface in clouds.yaml',
    },
    { text: AMBIGUOUS, error: invalid },
    { status: 400, text: new RegExp(SUBJECTS.map(([, wording]) => wording.source).join('|'), 'i'), error: invalid },
    { status: 403, text: LABEL_FORBIDDEN, error: invalid },
  ],
};

/** Returns the `DriverError` for an answer with an error status. */
export function errorOf(attempted: Attempted, answer: HttpAnswer): DriverError {
  const { status, headers, text } = answer;
  const detail = detailOf(answer);
  const isOfService =
    headers['x-openstack-request-id'] !== undefined || /^\s*\{\s*"(itemNotFound|NeutronError)"/.test(text);
  const code = isOfService ? 'service' : undefined;
  const retryAfterMs = retryAfterOf(answer, attempted.now);
  return errorOfAnswer(ERRORS, { status, code, text: detail, summary: detail, retryAfterMs }, attempted);
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
export function connectionErrorOf(attempted: Attempted, cause: unknown): DriverError {
  const { origin: to } = attempted;
  return connectionError(attempted, { cause, to, trust: '"cacert" and "verify" in clouds.yaml' });
}

/** Returns the `DriverError` for the fault of a server in ERROR. The server exists and must be deleted. */
export function faultError(serverId: string, fault: string): DriverError {
  const message = `server ${serverId} went to ERROR: ${fault}`;
  if (QUOTA.test(fault)) return new QuotaError(message, { outcome: 'applied' });
  if (CAPACITY.test(fault)) return new CapacityError(message, { outcome: 'applied' });
  return new InstanceFailedError(message);
}
