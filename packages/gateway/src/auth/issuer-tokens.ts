/** Verifies OpenID Connect tokens: signature, issuer, audience, times, and the claims of the grants. */

import { answerText, reasonOf, type Clock, type Logger } from '@nodepool/core';
import {
  createRemoteJWKSet,
  customFetch,
  decodeJwt,
  errors,
  jwtVerify,
  type FetchImplementation,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose';
import { ProblemError } from '../http/problems.js';
import type { ClaimRule, Issuer } from '../settings/settings.js';
import { matches, type Principal } from './principal.js';

/** Only signatures with a public key; a shared secret would be one of the gateway's. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** Permitted difference of the clocks, in seconds. */
const CLOCK_TOLERANCE_S = 60;
const FETCH_TIMEOUT_MS = 5000;
/** Least time (ms) between two reads of the keys for a token whose key is unknown: an issuer may rotate its keys. */
const ROTATION_COOLDOWN_MS = 5000;
const MAX_ANSWER_BYTES = 1_000_000;

export interface IssuerTokensOptions {
  readonly issuers: () => readonly Issuer[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: the fetch of Node.js. */
  readonly fetch?: FetchImplementation;
}

export class IssuerTokens {
  /** The public keys of issuers, by their addresses. */
  private readonly keys = new Map<string, Promise<JWTVerifyGetKey>>();

  constructor(private readonly options: IssuerTokensOptions) {}

  /**
   * Resolves with the caller; undefined if the token is not valid, or no grant permits it. Rejects with a problem
   * `unavailable` if the issuer cannot be asked for its keys.
   */
  async verify(token: string): Promise<Principal | undefined> {
    const issuer = this.issuerOf(token);
    if (issuer === undefined) return undefined;
    const { log, clock } = this.options;
    try {
      const keys = await this.keysOf(issuer);
      const { payload } = await jwtVerify(token, keys, {
        issuer: issuer.issuer,
        audience: issuer.audience,
        algorithms: ALGORITHMS,
        requiredClaims: ['sub', 'exp'],
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: new Date(clock.now()),
      });
      return principalOf(issuer, payload);
    } catch (error) {
      if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout) && !isFetchFailure(error)) {
        log.debug('A token of an issuer is refused', { issuer: issuer.name, reason: error.message });
        return undefined;
      }
      // The address that the issuer has published may have changed.
      this.keys.delete(nameOf(issuer));
      log.warn('The keys of an issuer cannot be read', { issuer: issuer.name, reason: reasonOf(error) });
      throw new ProblemError('unavailable', `the keys of the issuer ${issuer.name} cannot be read`, {
        retryAfter: 5,
        cause: error,
      });
    }
  }

  private issuerOf(token: string): Issuer | undefined {
    try {
      const { iss } = decodeJwt(token);
      return this.options.issuers().find(({ issuer }) => issuer === iss);
    } catch {
      // Not a token of this kind at all.
      return undefined;
    }
  }

  private keysOf(issuer: Issuer): Promise<JWTVerifyGetKey> {
    const key = nameOf(issuer);
    let keys = this.keys.get(key);
    if (keys === undefined) {
      keys = this.loadKeys(issuer);
      this.keys.set(key, keys);
      keys.catch(() => this.keys.delete(key));
    }
    return keys;
  }

  private async loadKeys({ issuer, jwksUri }: Issuer): Promise<JWTVerifyGetKey> {
    const { fetch: request = fetch } = this.options;
    const bounded = boundedFetch(request);
    const uri = jwksUri ?? (await discover(issuer, bounded));
    return createRemoteJWKSet(new URL(uri), {
      timeoutDuration: FETCH_TIMEOUT_MS,
      cooldownDuration: ROTATION_COOLDOWN_MS,
      [customFetch]: bounded,
    });
  }
}

/** Returns the name under which the keys of an issuer are cached. */
function nameOf({ issuer, jwksUri }: Issuer): string {
  return `${issuer} ${jwksUri ?? ''}`;
}

/** Returns a fetch that follows no redirects and refuses answers that are too large. */
function boundedFetch(request: FetchImplementation): FetchImplementation {
  return async (url, options) => {
    const answer = await request(url, { ...options, redirect: 'manual' });
    const text = await answerText(answer.body, { maxBytes: MAX_ANSWER_BYTES, signal: options.signal });
    return new Response(text, { status: answer.status, headers: answer.headers });
  };
}

/** Resolves with the address of the keys of an issuer (OpenID Connect Discovery). */
async function discover(issuer: string, request: FetchImplementation): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const answer = await request(url, {
    headers: new Headers({ accept: 'application/json' }),
    method: 'GET',
    redirect: 'manual',
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  });
  if (answer.status !== 200) throw new Error(`${url} answers with status ${answer.status}`);
  const document: unknown = await answer.json();
  const { issuer: named, jwks_uri: uri } = (document ?? {}) as {
    readonly issuer?: unknown;
    readonly jwks_uri?: unknown;
  };
  const isSafe = typeof uri === 'string' && new URL(uri).protocol === new URL(issuer).protocol;
  if (named !== issuer || !isSafe) throw new Error(`${url} is not the configuration of the issuer ${issuer}`);
  return uri;
}

/** Returns true if the keys were not read; such an error of jose has its plainest class. */
function isFetchFailure(error: errors.JOSEError): boolean {
  return error.code === 'ERR_JOSE_GENERIC';
}

function principalOf({ name, grants }: Issuer, payload: JWTPayload): Principal | undefined {
  const found = grants.find(({ claims }) => claims.every((rule) => hasClaim(payload, rule)));
  return found === undefined ? undefined : { subject: `${name}:${payload.sub ?? ''}`, grant: found.grant };
}

function hasClaim(payload: JWTPayload, { name, values }: ClaimRule): boolean {
  const found = payload[name];
  const texts: readonly unknown[] = Array.isArray(found) ? found : [found];
  return texts.some((text) =>
    values.some(
      (value) => value === text || (typeof value === 'string' && typeof text === 'string' && matches(value, text)),
    ),
  );
}
