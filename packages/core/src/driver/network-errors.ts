/** Failures of connections as Node.js throws them, from `fetch`, `node:http` and `node:net`. */

import type { DriverErrorCode, Outcome } from './error-codes.js';

export interface NetworkFailure {
  readonly code: Extract<DriverErrorCode, 'transient' | 'timeout' | 'certificate'>;
  /** `not-applied` if no connection was established, hence no data was sent. */
  readonly outcome: Outcome;
  /** Error code of the operating system, TLS or undici, e.g. `ECONNREFUSED`. */
  readonly systemCode: string;
  /** The failure and its reason, e.g. `fetch failed: connect ECONNREFUSED 192.0.2.1:443`. */
  readonly message: string;
}

/** Codes of errors that occur before any data is sent. */
const NEVER_SENT: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);
/** System calls that precede the sending of data. */
const BEFORE_SENDING = /^(connect|getaddrinfo)$/;
/** Codes that also occur on established connections. */
const BROKEN: ReadonlySet<string> = new Set([
  'ECONNABORTED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETRESET',
  'ENETUNREACH',
  'ENOTCONN',
  'EPIPE',
  'EADDRNOTAVAIL',
  'ERR_STREAM_PREMATURE_CLOSE',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_SOCKET',
]);
const TIMED_OUT: ReadonlySet<string> = new Set([
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
/** Codes of certificate errors. Certificates are verified before any data is sent. */
const BAD_CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL/;
/** The fault of a certificate and its remedy, by the code of the error. */
const CERTIFICATE_ADVICE: Readonly<Record<string, string | undefined>> = {
  CERT_HAS_EXPIRED:
    'has expired (CERT_HAS_EXPIRED); it must be renewed in the cloud, unless the clock of this host is wrong',
  CERT_NOT_YET_VALID: 'is not valid yet (CERT_NOT_YET_VALID); check the clock of this host and that of the cloud',
};
/** Name of undici's errors of an answer that is not HTTP. */
const PARSER_ERROR = 'HTTPParserError';
/** Code of the DOMException with which `AbortSignal.timeout` aborts. */
const DOM_TIMEOUT_ERR = 23;

/** Returns the network failure that an error describes; undefined if it does not come from a connection. */
export function networkFailureOf(error: unknown): NetworkFailure | undefined {
  if (!isRecord(error)) return undefined;
  if (error['name'] === 'TimeoutError' && error['code'] === DOM_TIMEOUT_ERR)
    return { code: 'timeout', outcome: 'unknown', systemCode: 'TimeoutError', message: textOf(error) };
  // `fetch` rejects with a TypeError, and so does an interrupted body; the cause has the code.
  const { cause } = error;
  if (error['name'] === 'TypeError' && isRecord(cause)) {
    const failure = networkFailureOf(cause);
    return failure && { ...failure, message: `${textOf(error)}: ${failure.message}` };
  }
  const code = codeIn(error);
  if (code === undefined) return undefined;
  const kind = kindOf(code);
  if (kind === undefined) return undefined;
  const message = textOf(error);
  const outcome = wasSent(error) ? 'unknown' : 'not-applied';
  return {
    // A cloud that accepts no connections is out of service, even if the symptom is a timeout.
    code: kind === 'timeout' && outcome === 'not-applied' ? 'transient' : kind,
    outcome,
    systemCode: code,
    message: message.includes(code) ? message : `${message} (${code})`,
  };
}

/** Returns advice for a certificate error with this code; `setting` names the setting with the trusted authorities. */
export function certificateAdvice(systemCode: string, setting: string): string {
  const advice = CERTIFICATE_ADVICE[systemCode];
  return advice ?? `is not trusted (${systemCode}); see ${setting}`;
}

/** Returns the network failure of an error or of its innermost cause, since libraries wrap the errors of `fetch`. */
export function networkCauseOf(error: unknown): NetworkFailure | undefined {
  if (!isRecord(error)) return undefined;
  return networkCauseOf(error['cause']) ?? networkFailureOf(error);
}

/** Returns true if a connection failed because a certificate is not trusted, by this host or by the server. */
export function isUntrusted(error: unknown): boolean {
  return networkCauseOf(error)?.code === 'certificate';
}

/** Returns the error code. A host with several addresses fails with one error per address. */
function codeIn({ name, code, errors }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof code === 'string') return code;
  // undici gives some errors of its HTTP parser no code.
  if (name === PARSER_ERROR) return PARSER_ERROR;
  if (!Array.isArray(errors)) return undefined;
  return errors.filter(isRecord).map(codeIn).find((each) => each !== undefined); // prettier-ignore
}

function kindOf(code: string): NetworkFailure['code'] | undefined {
  if (TIMED_OUT.has(code)) return 'timeout';
  if (BAD_CERTIFICATE.test(code)) return 'certificate';
  return NEVER_SENT.has(code) || BROKEN.has(code) || code.startsWith('HPE_') || code === PARSER_ERROR
    ? 'transient'
    : undefined;
}

/** Returns false if the error proves that no data was sent. A host of several addresses fails with one error each. */
function wasSent(error: Readonly<Record<string, unknown>>): boolean {
  const { code, syscall, errors } = error;
  if (Array.isArray(errors) && errors.length > 0) return errors.some((each) => !isRecord(each) || wasSent(each));
  if (typeof syscall === 'string' && BEFORE_SENDING.test(syscall)) return false;
  return typeof code !== 'string' || !(NEVER_SENT.has(code) || BAD_CERTIFICATE.test(code));
}

function textOf({ message, errors }: Readonly<Record<string, unknown>>): string {
  if (typeof message === 'string' && message !== '') return message;
  return Array.isArray(errors) ? errors.filter(isRecord).map(textOf).join(', ') : 'the connection failed';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
