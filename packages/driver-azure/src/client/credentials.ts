/** The credentials in use and their token. Both are replaced when Azure refuses them, without a restart. */

import { isDeepStrictEqual } from 'node:util';
import type { HttpClient, TlsSettings } from '@azure/core-rest-pipeline';
import type { ApiCredentials, Call, Clock, Logger, Refusal, TokenSourceOptions } from '@nodepool/core';
import { ConfigurationError, TokenSource } from '@nodepool/core';
import type { AzureAuth } from '../auth.js';
import { errorOf } from '../errors.js';
import { checkCredential, logIn, loginService } from './login.js';

/** Credentials that a call is sent with. */
export interface Used {
  readonly auth: AzureAuth;
  /** One object per content of the files, because the library keeps connections by object. */
  readonly tls: TlsSettings | undefined;
  readonly token: string;
}

export interface CredentialsOptions {
  /** Reads the file. Throws `ConfigurationError`. */
  readonly read: () => AzureAuth;
  readonly api: TokenSourceOptions<string>['api'];
  readonly client: HttpClient;
  readonly clock: Clock;
}

export class Credentials implements ApiCredentials<Used> {
  private current: Omit<Used, 'token'>;
  private readonly tokens: TokenSource<string>;

  /** Throws `ConfigurationError` if `read` does, or if the credentials are invalid. */
  constructor(private readonly options: CredentialsOptions) {
    const { api, client, clock } = options;
    this.current = checked(options.read());
    const service = (): string => loginService(this.auth);
    this.tokens = new TokenSource({
      ...{ api, clock, service },
      operation: { service: 'login', method: 'POST', operation: 'token' },
      logIn: (attempt) => {
        this.readAgain(attempt.log);
        return logIn(this.auth, this.current.tls, client, attempt);
      },
      errorOf: (error, attempted) => errorOf(attempted, error),
    });
  }

  get auth(): AzureAuth {
    return this.current.auth;
  }

  /** The values that must not appear in texts. */
  get secrets(): readonly (string | undefined)[] {
    const { login } = this.auth;
    return [this.tokens.latest, login.kind === 'secret' ? login.clientSecret : undefined];
  }

  /** Resolves with the credentials for a call. */
  async get(call: Call): Promise<Used> {
    const token = await this.tokens.get(call);
    return { ...this.current, token };
  }

  /**
   * Replaces the credentials after a refusal. Returns false, changing nothing, if neither another token nor the present
   * content of the files can help.
   */
  renew({ auth, token }: Used, { status, log }: Refusal): boolean {
    const isTokenRefused = status === 401;
    // Another caller may have replaced them already.
    const hasOthers = this.auth !== auth || this.tokens.latest !== token || this.readAgain(log);
    if (!hasOthers && !isTokenRefused) return false;
    this.tokens.refused(token);
    return true;
  }

  /** Uses the content of the files. Returns false if it is unchanged, or cannot be used. */
  private readAgain(log: Logger): boolean {
    try {
      const auth = this.options.read();
      if (isDeepStrictEqual(auth, this.auth)) return false;
      if (!isSameAccount(auth, this.auth)) {
        log.warn('The credentials file of Azure names another subscription or endpoint; restart the program to use it');
        return false;
      }
      this.current = checked(auth);
    } catch (error) {
      // The file may be incomplete because an operator is changing it.
      if (!(error instanceof ConfigurationError)) throw error;
      log.warn('The credentials file of Azure cannot be used; its former content is used', { error });
      return false;
    }
    log.info('Using the changed credentials of Azure');
    return true;
  }
}

function checked(auth: AzureAuth): Omit<Used, 'token'> {
  checkCredential(auth);
  return { auth, tls: auth.ca === undefined ? undefined : { ca: auth.ca } };
}

/** Ids of resources contain the subscription, and a secret must not be sent to the login service of another cloud. */
function isSameAccount(a: AzureAuth, b: AzureAuth): boolean {
  return a.subscriptionId === b.subscriptionId && a.authorityHost === b.authorityHost && a.endpoint === b.endpoint;
}
