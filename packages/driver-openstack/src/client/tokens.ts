/** Reads a token and the service catalog that comes with it. */

import { isJsonObject, objectAt, stringAt, TransientError, type Granted } from '@nodepool/core';
import { readCatalog, type CatalogEntry } from './catalog.js';
import type { HttpAnswer } from './transport.js';

/** Lifetime of a token without an expiration time (ms). */
const DEFAULT_LIFE_MS = 3_600_000;

export interface Token {
  readonly value: string;
  readonly projectId: string | undefined;
  readonly catalog: readonly CatalogEntry[];
}

/**
 * Reads the answer of `POST /v3/auth/tokens`. The token's lifetime is the difference of the cloud's own timestamps,
 * because the clocks may differ.
 */
export function readToken(answer: HttpAnswer, body: unknown, place: string): Granted<Token> {
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
  const projectId = project === undefined ? undefined : stringAt(project, 'id');
  return { token: { value, projectId, catalog: readCatalog(token) }, lifeMs, status: answer.status };
}
