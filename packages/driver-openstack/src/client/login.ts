/** Authenticates at identity v3. */

import { AuthError, TokenSource, type Attempt, type Clock, type Granted } from '@nodepool/core';
import { connectionErrorOf, detailOf } from '../errors.js';
import { jsonOf } from './answers.js';
import type { Caller, Operation } from './caller.js';
import type { Credentials } from './credentials.js';
import { readToken, type Token } from './tokens.js';

const LOGIN: Operation = { service: 'identity', method: 'POST', operation: 'auth.tokens' };
const HEADERS = { 'content-type': 'application/json', accept: 'application/json' };

export interface LoginOptions {
  readonly caller: Caller;
  readonly clock: Clock;
  /** Called before each login, because passwords change while the launcher runs. */
  readonly credentials: () => Credentials;
  /** Names the cloud in messages. */
  readonly place: string;
}

/**
 * Returns the source of the token that all calls share. It rejects with an `AuthError` if the cloud refuses the
 * credentials.
 */
export function tokenSource({ caller, clock, credentials, place }: LoginOptions): TokenSource<Token> {
  let { identityUrl } = credentials();
  return new TokenSource<Token>({
    api: caller.api,
    clock,
    operation: LOGIN,
    service: () => `the login at ${identityUrl}`,
    logIn: async ({ signal, http }: Attempt): Promise<Granted<Token>> => {
      const current = credentials();
      ({ identityUrl } = current);
      const url = `${identityUrl}/auth/tokens`;
      const message = { url, headers: HEADERS, body: JSON.stringify(current.body) };
      const answered = await caller.exchange(LOGIN.method, message, signal, http);
      const { status, answer } = answered;
      if (status === 401 || status === 403) {
        const said = `${status} ${detailOf(answer)}`;
        throw new AuthError(`${place}: ${url} refuses the credentials (${said}); see "auth" of the cloud`);
      }
      if (status < 300) return readToken(answer, jsonOf(answer), url);
      const failure = caller.failureOf(LOGIN, answered);
      // The service answers 404 for an application credential that was deleted.
      throw failure.code === 'not-found' ? new AuthError(`${failure.message}; see "auth" of the cloud`) : failure;
    },
    errorOf: (error, now) => connectionErrorOf(caller.attempted(LOGIN, now), identityUrl, error),
  });
}
