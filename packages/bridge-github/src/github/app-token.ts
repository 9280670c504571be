/** The signed token with which a GitHub App identifies itself. */

import { createPrivateKey, sign } from 'node:crypto';

/** GitHub refuses tokens from the future, so that a clock that is ahead needs a margin (s). */
const MARGIN_S = 60;
/** Time from `iat` to `exp`; GitHub's limit is 10 minutes from now (s). */
const LIFETIME_S = 540;

/** Returns the token. Throws if the key is not a private key in PEM format. `now` is GitHub's time in milliseconds. */
export function appToken(clientId: string, privateKey: string, now: number): string {
  const issuedAt = Math.floor(now / 1000) - MARGIN_S;
  const claims = { iat: issuedAt, exp: issuedAt + LIFETIME_S, iss: clientId };
  const signed = `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}`;
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), createPrivateKey(privateKey)).toString('base64url')}`;
}

/** Returns the lifetime of a token (JWT) in milliseconds from its own `iat` or from `now`; undefined if it has none. */
export function lifetimeOf(token: string, now: number): number | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    if (typeof claims !== 'object' || claims === null) return undefined;
    const { exp, iat, nbf } = claims as Readonly<Record<string, unknown>>;
    // The difference of two times of GitHub's clock does not depend on the clock of this host.
    const from = [iat, nbf].find((each) => typeof each === 'number') ?? now / 1000;
    return typeof exp === 'number' ? Math.max(0, (exp - from) * 1000) : undefined;
  } catch {
    // The token is opaque: a refusal tells when it has expired.
    return undefined;
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
