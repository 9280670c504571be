/**
 * Explains TLS errors to operators: the faulty certificate, the fault, and the remedy. Codes are those of Node.js
 * ("X509 certificate error codes") and OpenSSL's names of TLS alerts.
 */

import { X509Certificate } from 'node:crypto';
import { InvalidArgumentError } from '../errors.js';

/** The client's side of a TLS connection. */
export interface TlsContext {
  /** Name that the server's certificate must have. */
  readonly expectedName: string;
  /** PEM of the client's certificate, if it has one. */
  readonly certificate: Buffer | undefined;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
}

const UNKNOWN_AUTHORITY =
  "the server's certificate is not signed by an authority that is trusted; is tls.ca the one that signed it?";

const SERVER_CERTIFICATE: ReadonlyMap<string, string> = new Map([
  ['CERT_HAS_EXPIRED', "the server's certificate has expired; it must be renewed at the server"],
  ['CERT_NOT_YET_VALID', "the server's certificate is not valid yet; check the clocks of both machines"],
  ['CERT_REVOKED', "the server's certificate was revoked; it must be replaced at the server"],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_AUTHORITY],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_AUTHORITY],
  ['CERT_SIGNATURE_FAILURE', UNKNOWN_AUTHORITY],
]);

/** Alerts of a server that refuses the client's certificate or requires one. */
const CLIENT_CERTIFICATE_ALERT =
  /ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_(?:EXPIRED|REVOKED|UNKNOWN|REQUIRED)|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE|DECRYPT_ERROR)$/;

/** Returns an explanation of a failed TLS connection, or the error's own message if its code is unknown. */
export function explainTlsError(error: Error, context: TlsContext): string {
  const code = codeOf(error);
  const known = SERVER_CERTIFICATE.get(code);
  if (known !== undefined) return `${known} (${code})`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = 'reason' in error ? String(error.reason) : error.message;
    const remedy =
      'is it the right server? If it is, set verify-hostname in zookeeper-tls to false (programs: tls.servername)';
    return `the server's certificate is not for ${context.expectedName}: ${names}; ${remedy}`;
  }
  if (CLIENT_CERTIFICATE_ALERT.test(code)) return `${aboutClientCertificate(context)} (${code})`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || (code === 'ECONNRESET' && error.message.includes('before secure'))) {
    return `the server does not answer with TLS; is this its secure port (secureClientPort)? (${error.message})`;
  }
  return error.message;
}

/**
 * Returns the reason why a server has closed a connection without an answer. Servers close it without an alert if the
 * client's certificate has expired.
 */
export function explainClosing(context: TlsContext): string {
  const expiry = context.certificate === undefined ? undefined : expiryOf(context.certificate);
  const closed = 'the server closed the connection';
  if (expiry === undefined || expiry > context.now) return closed;
  return `${closed}; the client's certificate expired on ${new Date(expiry).toISOString()}; renew tls.cert`;
}

/** Returns the error for certificates or a key that TLS cannot use. */
export function tlsMaterialError(cause: unknown): InvalidArgumentError {
  const reason =
    codeOf(cause) === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH'
      ? 'tls.key is not the key of tls.cert'
      : `tls.ca, tls.cert or tls.key cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`;
  return new InvalidArgumentError('invalid-argument', `${reason}; give matching PEM files`, { cause });
}

function aboutClientCertificate({ certificate, now }: TlsContext): string {
  if (certificate === undefined) {
    return 'the server demands a certificate of the client, and there is none; set tls.cert and tls.key';
  }
  const expiry = expiryOf(certificate);
  if (expiry !== undefined && expiry <= now) {
    return `the server refuses the client's certificate, which expired on ${new Date(expiry).toISOString()}; renew tls.cert`;
  }
  return "the server refuses the client's certificate; is tls.cert signed by an authority that the server trusts?";
}

function expiryOf(certificate: Buffer): number | undefined {
  try {
    return Date.parse(new X509Certificate(certificate).validTo);
  } catch {
    // The expiry is only a detail of another error.
    return undefined;
  }
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
