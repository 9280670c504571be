/** Manages the token and the service catalog that comes with it. */

import { isJsonObject, objectAt, stringAt, TransientError, type Clock } from '@nodepool/core';
import { readCatalog, type CatalogEntry } from './catalog.js';
import type { HttpAnswer } from './transport.js';

/** A token is renewed this long before it expires (ms), or after four fifths of its lifetime if that is later. */
const RENEW_BEFORE_MS = 300_000;
const RENEW_AFTER = 0.8;
/** Lifetime of a token without an expiration time (ms). */
const DEFAULT_LIFE_MS = 3_600_000;

export interface Token {
  readonly value: string;
  readonly projectId: string | undefined;
  readonly catalog: readonly CatalogEntry[];
  /** `Clock.monotonic` time (ms) at which the token is renewed. */
  readonly renewAt: number;
}

/** Obtains one token that all calls share. */
export class Tokens {
  private current: Token | undefined;
  private flight: Promise<Token> | undefined;

  /** `authenticate` obtains a new token. It receives no caller's signal, because the token is shared. */
  constructor(
    private readonly clock: Clock,
    private readonly authenticate: () => Promise<Token>,
  ) {}

  async get(): Promise<Token> {
    const { current } = this;
    if (current !== undefined && this.clock.monotonic() < current.renewAt) return current;
    this.flight ??= this.renew();
    return this.flight;
  }

  /** Discards a token that the cloud refused. All calls that were refused with it share the next one. */
  refused(token: Token): void {
    if (this.current === token) this.current = undefined;
  }

  private async renew(): Promise<Token> {
    try {
      this.current = await this.authenticate();
      return this.current;
    } finally {
      this.flight = undefined;
    }
  }
}

/**
 * Reads the answer of `POST /v3/auth/tokens`. The token's lifetime is the difference of the cloud's own timestamps,
 * counted from now, because the clocks may differ.
 */
export function readToken(answer: HttpAnswer, body: unknown, now: number, place: string): Token {
  const value = answer.headers['x-subject-token'];
  const token = isJsonObject(body) ? objectAt(body, 'token') : undefined;
  if (value === undefined || token === undefined) {
    throw new TransientError(`${place} answered a login with status ${answer.status}, but without a token`, {
      outcome: 'not-applied',
    });
  }
  const issuedAt = Date.parse(stringAt(token, 'issued_at') ?? '');
  const expiresAt = Date.parse(stringAt(token, 'expires_at') ?? '');
  const difference = expiresAt - issuedAt;
  const lifeMs = Number.isFinite(difference) && difference > 0 ? difference : DEFAULT_LIFE_MS;
  const project = objectAt(token, 'project');
  return {
    value,
    projectId: project === undefined ? undefined : stringAt(project, 'id'),
    catalog: readCatalog(token),
    renewAt: now + Math.max(lifeMs - RENEW_BEFORE_MS, lifeMs * RENEW_AFTER),
  };
}
