/** Authenticates at identity v3. */

import type { Attempt, Clock, Granted, TokenSourceOptions } from '@nodepool/core';
import { AuthError, TokenSource } from '@nodepool/core';
import { connectionErrorOf, detailOf, errorOf } from '../errors.js';
import { jsonOf } from './answers.js';
import type { Credentials } from './credentials.js';
import { readToken, type Token } from './tokens.js';
import { HttpStatusError, sendMessage, type HttpTransport } from './transport.js';

const LOGIN = { service: 'identity', method: 'POST', operation: 'auth.tokens' } as const;
const NAME = 'identity: POST auth.tokens';
const HEADERS = { 'content-type': 'application/json', accept: 'application/json' };

export interface LoginOptions extends Pick<TokenSourceOptions<Token>, 'api'> {
  readonly clock: Clock;
  readonly transport: HttpTransport;
  /** Called before each login, because passwords change while the launcher runs. */
  readonly credentials: () => Credentials;
  /** Names the cloud in messages. */
  readonly place: string;
}

/** Returns the source of the token of all calls, which rejects with `AuthError` if the credentials are refused. */
export function tokenSource({ api, clock, transport, credentials, place }: LoginOptions): TokenSource<Token> {
  let { identityUrl } = credentials();
  const loginUrl = (): string => `${identityUrl}/auth/tokens`;
  return new TokenSource<Token>({
    ...{ api, clock, operation: LOGIN },
    service: () => `the login at ${identityUrl}`,
    logIn: async (attempt: Attempt): Promise<Granted<Token>> => {
      const current = credentials();
      ({ identityUrl } = current);
      const message = { method: LOGIN.method, url: loginUrl(), headers: HEADERS, body: JSON.stringify(current.body) };
      const answer = await sendMessage(transport, message, attempt);
      return readToken(answer, jsonOf(answer), loginUrl());
    },
    errorOf: (error, login) => {
      const attempted = { ...login, operation: NAME };
      if (!(error instanceof HttpStatusError)) return connectionErrorOf(attempted, error);
      const { answer } = error;
      const { status } = answer;
      if (status === 401 || status === 403) {
        const said = `${status} ${detailOf(answer)}`;
        return new AuthError(`${place}: ${loginUrl()} refuses the credentials (${said}); see "auth" of the cloud`);
      }
      const failure = errorOf(attempted, answer);
      // The service answers 404 for an application credential that was deleted.
      return failure.code === 'not-found' ? new AuthError(`${failure.message}; see "auth" of the cloud`) : failure;
    },
  });
}
