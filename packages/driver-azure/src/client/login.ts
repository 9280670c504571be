/** Creates the authenticated HTTP pipeline to the resource manager from the credentials file. */

import type { Pipeline, PipelineOptions, PipelinePolicy } from '@azure/core-rest-pipeline';
import type { AccessToken, GetTokenOptions, TokenCredential } from '@azure/identity';
import { AuthError, ConfigurationError, reasonOf } from '@nodepool/core';
import type { AzureAuth } from '../auth.js';
import { loadIdentity, loadPipeline } from './libraries.js';

/** Time before the expiry of a token from which it is renewed (ms). */
const RENEWAL_MS = 120_000;

/** Creates a pipeline without a token and without retries. */
export function makePipeline(auth: AzureAuth): Pipeline {
  const { createPipelineFromOptions } = loadPipeline();
  const options: PipelineOptions = {
    retryOptions: { maxRetries: 0 },
    ...(auth.ca === undefined ? {} : { tlsOptions: { ca: auth.ca } }),
  };
  const pipeline = createPipelineFromOptions(options);
  pipeline.addPolicy(tokenPolicy(checkedCredential(auth, options), `${auth.endpoint}/.default`));
  return pipeline;
}

/**
 * Returns a policy that adds a token to every request. A valid token is renewed without a wait, and used until it
 * expires if the renewal fails. Microsoft's policy does not handle the rejection of a renewal, which ends the process.
 */
function tokenPolicy(credential: TokenCredential, scope: string): PipelinePolicy {
  let token: AccessToken | undefined;
  let renewal: Promise<AccessToken> | undefined;
  const renew = async (options: GetTokenOptions): Promise<AccessToken> => {
    const renewed = await credential.getToken(scope, options);
    if (renewed === null) throw new AuthError('Microsoft Entra returned no token');
    token = renewed;
    return renewed;
  };
  const tokenFor = async (options: GetTokenOptions): Promise<AccessToken> => {
    // The library computes the expiry with the clock of the host.
    const leftMs = token === undefined ? 0 : token.expiresOnTimestamp - Date.now();
    if (token !== undefined && leftMs > RENEWAL_MS) return token;
    renewal ??= renew(options).finally(() => (renewal = undefined));
    if (token === undefined || leftMs <= 0) return await renewal;
    renewal.catch(() => undefined);
    return token;
  };
  return {
    name: 'tokenPolicy',
    sendRequest: async (request, next) => {
      const { abortSignal } = request;
      const { token: text } = await tokenFor(abortSignal === undefined ? {} : { abortSignal });
      request.headers.set('authorization', `Bearer ${text}`);
      return await next(request);
    },
  };
}

/** Throws `ConfigurationError` if Microsoft's library refuses a value, e.g. a tenant id with a space. */
function checkedCredential(auth: AzureAuth, options: PipelineOptions): TokenCredential {
  try {
    return credentialOf(auth, options);
  } catch (error) {
    throw new ConfigurationError(`the Azure credentials are invalid: ${reasonOf(error)}`, { cause: error });
  }
}

function credentialOf({ login, authorityHost }: AzureAuth, common: PipelineOptions): TokenCredential {
  const { ClientSecretCredential, ManagedIdentityCredential, WorkloadIdentityCredential } = loadIdentity();
  const options = {
    ...common,
    authorityHost,
    // A login service outside Microsoft's public directories is a private one.
    disableInstanceDiscovery: !/\.(microsoftonline\.(com|us)|chinacloudapi\.cn)$/.test(new URL(authorityHost).hostname),
  };
  switch (login.kind) {
    case 'secret':
      return new ClientSecretCredential(login.tenantId, login.clientId, login.clientSecret, options);
    case 'managed-identity':
      return new ManagedIdentityCredential(login.clientId === undefined ? {} : { clientId: login.clientId });
    case 'workload-identity': {
      const { tenantId, clientId, tokenFile } = login;
      return new WorkloadIdentityCredential({
        ...options,
        ...(tenantId === undefined ? {} : { tenantId }),
        ...(clientId === undefined ? {} : { clientId }),
        ...(tokenFile === undefined ? {} : { tokenFilePath: tokenFile }),
      });
    }
  }
}
