/** Authenticates at identity v3. */

import { AuthError, DriverError, toDriverError, type Call } from '@nodepool/core';
import { detailOf, errorOf } from '../errors.js';
import { jsonOf } from './answers.js';
import type { Caller, Operation } from './caller.js';
import type { Credentials } from './credentials.js';
import { readToken, type Token } from './tokens.js';

const LOGIN: Operation = { service: 'identity', method: 'POST', operation: 'auth.tokens' };
const TIMEOUT_MS = 60_000;
const HEADERS = { 'content-type': 'application/json', accept: 'application/json' };

/**
 * Requests a token. `place` names the cloud in messages. Rejects with an `AuthError` if the cloud refuses the
 * credentials; failures have the outcome `not-applied`, because a login leaves nothing to clean up.
 */
export async function logIn(
  caller: Caller,
  { identityUrl, body }: Credentials,
  call: Call,
  now: () => number,
  place: string,
): Promise<Token> {
  const url = `${identityUrl}/auth/tokens`;
  try {
    const answer = await caller.send(
      LOGIN,
      { url, headers: HEADERS, body: JSON.stringify(body), timeoutMs: TIMEOUT_MS },
      call,
    );
    if (answer.status === 401 || answer.status === 403) {
      const said = `${answer.status} ${detailOf(answer)}`;
      throw new AuthError(`${place}: ${url} refuses the credentials (${said}); see "auth" of the cloud`);
    }
    if (answer.status >= 300) throw refusal(errorOf(caller.attempted(LOGIN), answer));
    return readToken(answer, jsonOf(answer), now(), url);
  } catch (error) {
    const failure = toDriverError(error);
    if (failure.outcome === 'not-applied') throw failure;
    const { code, message, retryAfterMs } = failure;
    throw new DriverError(code, message, { cause: error, outcome: 'not-applied', retryAfterMs });
  }
}

/**
 * Returns the error of a failed login. The service answers 404 for an application credential that was deleted, which
 * must not look like a missing server to the caller.
 */
function refusal(error: DriverError): DriverError {
  if (error.code !== 'not-found') return error;
  return new AuthError(`${error.message}; see "auth" of the cloud`, { cause: error });
}
