/** Logs in at Microsoft Entra, or at the service for managed identities, with the credentials file. */

import type { HttpClient, TlsSettings } from '@azure/core-rest-pipeline';
import type { TokenCredential } from '@azure/identity';
import { AuthError, ConfigurationError, reasonOf, type Attempt, type Granted } from '@nodepool/core';
import type { AzureAuth } from '../auth.js';
import { clientOf, pipelineOptions } from './http.js';
import { loadIdentity } from './libraries.js';

/** Requests a token with a new credential object, since those of the library remember failures for a minute. */
export async function logIn(
  auth: AzureAuth,
  tls: TlsSettings | undefined,
  client: HttpClient,
  { http, signal }: Attempt,
): Promise<Granted<string>> {
  const credential = credentialOf(auth, tls, clientOf(client, http));
  const token = await credential.getToken(`${auth.endpoint}/.default`, { abortSignal: signal });
  if (token === null) throw new AuthError('Microsoft Entra returned no token');
  // The library computes the expiry with the clock of the host.
  return { token: token.token, lifeMs: token.expiresOnTimestamp - Date.now(), status: 200 };
}

export function loginService({ login, authorityHost }: AzureAuth): string {
  return login.kind === 'managed-identity'
    ? 'the login at the managed identity service of this host'
    : `the login at ${authorityHost}`;
}

/** Throws `ConfigurationError` if Microsoft's library refuses a value, e.g. a tenant id with a space. */
export function checkCredential(auth: AzureAuth): void {
  try {
    credentialOf(auth, undefined, undefined);
  } catch (error) {
    throw new ConfigurationError(`the Azure credentials are invalid: ${reasonOf(error)}`, { cause: error });
  }
}

function credentialOf(
  { login, authorityHost }: AzureAuth,
  tls: TlsSettings | undefined,
  httpClient: HttpClient | undefined,
): TokenCredential {
  const { ClientSecretCredential, ManagedIdentityCredential, WorkloadIdentityCredential } = loadIdentity();
  const common = { ...pipelineOptions(tls), ...(httpClient === undefined ? {} : { httpClient }) };
  const options = {
    ...common,
    authorityHost,
    // A login service outside Microsoft's public directories is a private one.
    disableInstanceDiscovery: !/\.(microsoftonline\.(com|us)|chinacloudapi\.cn)$/.test(new URL(authorityHost).hostname),
  };
  switch (login.kind) {
    case 'secret':
      return new ClientSecretCredential(login.tenantId, login.clientId, login.clientSecret, options);
    case 'managed-identity': {
      const { clientId } = login;
      // The certificates of the credentials file are those of Azure, not of the service of this host.
      const { tlsOptions: _unused, retryOptions: _usual, ...own } = common;
      return new ManagedIdentityCredential({ ...own, ...(clientId === undefined ? {} : { clientId }) });
    }
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
