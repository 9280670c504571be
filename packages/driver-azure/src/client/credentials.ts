/** The credentials in use and their pipeline. Both are replaced when Azure refuses them, without a restart. */

import { isDeepStrictEqual } from 'node:util';
import type { Pipeline } from '@azure/core-rest-pipeline';
import { ConfigurationError, type Logger } from '@nodepool/core';
import type { AzureAuth } from '../auth.js';
import { makePipeline } from './login.js';

export class Credentials {
  private current: { readonly auth: AzureAuth; readonly pipeline: Pipeline };

  /** Throws `ConfigurationError` if `read` does, or if the credentials are invalid. */
  constructor(private readonly read: () => AzureAuth) {
    this.current = withPipeline(read());
  }

  get auth(): AzureAuth {
    return this.current.auth;
  }

  get pipeline(): Pipeline {
    return this.current.pipeline;
  }

  /**
   * Replaces a pipeline after a refusal. Returns false, changing nothing, if neither another token nor the present
   * content of the file can help.
   */
  replace(refused: Pipeline, isTokenRefused: boolean, log: Logger): boolean {
    // Another caller may have replaced the pipeline already.
    if (this.pipeline !== refused || this.readAgain(log)) return true;
    // The pipeline caches its token.
    if (isTokenRefused) this.current = withPipeline(this.auth);
    return isTokenRefused;
  }

  /** Uses the content of the file. Returns false if it is unchanged, or cannot be used. */
  private readAgain(log: Logger): boolean {
    try {
      const auth = this.read();
      if (isDeepStrictEqual(auth, this.auth)) return false;
      if (!isSameAccount(auth, this.auth)) {
        log.warn('The credentials file of Azure names another subscription or endpoint; restart the program to use it');
        return false;
      }
      this.current = withPipeline(auth);
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

function withPipeline(auth: AzureAuth): { readonly auth: AzureAuth; readonly pipeline: Pipeline } {
  return { auth, pipeline: makePipeline(auth) };
}

/** Ids of resources contain the subscription, and a secret must not be sent to the login service of another cloud. */
function isSameAccount(a: AzureAuth, b: AzureAuth): boolean {
  return a.subscriptionId === b.subscriptionId && a.authorityHost === b.authorityHost && a.endpoint === b.endpoint;
}
