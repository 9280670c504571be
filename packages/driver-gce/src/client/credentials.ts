/** Authenticates calls with a token that all calls share, and logs in again if it is refused. */

import {
  AuthError,
  TokenSource,
  withoutSecrets,
  type ApiClient,
  type Attempt,
  type Call,
  type Clock,
  type DriverError,
  type Granted,
} from '@nodepool/core';
import { errorOf, isRefusal, type Attempted } from '../errors.js';

export interface CredentialsOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  /** Names the credentials in messages, e.g. `the credentials in /etc/nodepool/gce.json`. */
  readonly place: string;
  /** Reads the credentials and gets the headers of authenticated calls. */
  readonly logIn: (attempt: Attempt) => Promise<Granted<Headers>>;
}

export class Credentials {
  private readonly tokens: TokenSource<Headers>;

  constructor(private readonly options: CredentialsOptions) {
    const { api, clock, logIn, place } = options;
    const operation = `the login with ${place}`;
    this.tokens = new TokenSource({
      ...{ api, clock, logIn },
      operation: { service: 'login', method: 'POST', operation: 'token' },
      service: () => operation,
      errorOf: (error, now) => this.remedied(error, errorOf({ operation, changesSomething: false, now }, error)),
    });
  }

  /** The values that must not appear in texts. */
  get secrets(): readonly (string | undefined)[] {
    return [this.tokens.latest?.get('authorization')?.replace(/^Bearer /, '')];
  }

  /**
   * Makes a call. A refused call had no effect; it is repeated once, with credentials that are read again and a new
   * token: Google may refuse a token before its expiry, and the operator may have replaced the credentials. Rejects
   * with a `DriverError`. `attempted` is evaluated after a failure.
   */
  async call<T>(attempted: () => Attempted, call: Call, work: (headers: Headers) => Promise<T>): Promise<T> {
    const headers = await this.tokens.get(call);
    try {
      return await work(headers);
    } catch (error) {
      const failure = this.failureOf(attempted(), error);
      if (!isRefusal(error, failure)) throw failure;
    }
    // All calls that were refused with the same token share the new one.
    this.tokens.refused(headers);
    const next = await this.tokens.get(call);
    try {
      return await work(next);
    } catch (error) {
      throw this.remedied(error, this.failureOf(attempted(), error));
    }
  }

  private failureOf(attempted: Attempted, error: unknown): DriverError {
    const failure = errorOf(attempted, error);
    failure.message = withoutSecrets(failure.message, this.secrets);
    return failure;
  }

  /** Adds the remedy to the error of refused credentials. */
  private remedied(error: unknown, failure: DriverError): DriverError {
    if (!isRefusal(error, failure)) return failure;
    const remedy = `replace ${this.options.place}, which the driver reads again without a restart`;
    return new AuthError(`${failure.message}; ${remedy}`, { cause: error });
  }
}
