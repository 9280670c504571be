/** The token that all calls share. A refused one is replaced, with credentials that are read again. */

import {
  AuthError,
  isDriverError,
  TokenSource,
  type Attempted,
  type DriverError,
  type TokenSourceOptions,
} from '@nodepool/core';
import { errorOf, isRefusal } from '../errors.js';

export interface CredentialsOptions extends Pick<TokenSourceOptions<Headers>, 'api' | 'clock' | 'logIn'> {
  /** Names the credentials in messages, e.g. `the credentials in /etc/nodepool/gce.json`. */
  readonly place: string;
}

/** Google may refuse a token before its expiry, and the operator may have replaced the credentials. */
export class Credentials extends TokenSource<Headers> {
  constructor({ place, ...options }: CredentialsOptions) {
    super({
      ...options,
      operation: { service: 'login', method: 'POST', operation: 'token' },
      service: () => `the login with ${place}`,
      errorOf: (error, attempted) => remediedError(attempted, error, place),
    });
  }

  /** The values that must not appear in texts. */
  get secrets(): readonly (string | undefined)[] {
    return [this.latest?.get('authorization')?.replace(/^Bearer /, '')];
  }
}

/** Returns the `DriverError` of a failed call, with the remedy for refused credentials. */
export function remediedError(attempted: Attempted, error: unknown, place: string): DriverError {
  const failure = errorOf(attempted, error);
  // An error of this driver has its own remedy.
  if (isDriverError(error) || !isRefusal(error, failure)) return failure;
  const remedy = `replace ${place}, which the driver reads again without a restart`;
  return new AuthError(`${failure.message}; ${remedy}`, { cause: error });
}
