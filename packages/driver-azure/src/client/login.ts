/** Creates the authenticated HTTP pipeline to the resource manager from the credentials file. */

import type { Pipeline, PipelineOptions } from '@azure/core-rest-pipeline';
import type { TokenCredential } from '@azure/identity';
import { ConfigurationError, reasonOf } from '@nodepool/core';
import type { AzureAuth } from '../auth.js';
import { loadIdentity, loadPipeline } from './libraries.js';

/** Creates a pipeline without a token and without retries. */
export function makePipeline(auth: AzureAuth): Pipeline {
  const { bearerTokenAuthenticationPolicy, createPipelineFromOptions } = loadPipeline();
  const options: PipelineOptions = {
    retryOptions: { maxRetries: 0 },
    ...(auth.ca === undefined ? {} : { tlsOptions: { ca: auth.ca } }),
  };
  const pipeline = createPipelineFromOptions(options);
  const credential = checkedCredential(auth, options);
  pipeline.addPolicy(bearerTokenAuthenticationPolicy({ credential, scopes: `${auth.endpoint}/.default` }));
  return pipeline;
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
