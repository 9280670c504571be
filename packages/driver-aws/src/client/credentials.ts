/** Obtains credentials: those of a profile, of the environment or the machine, or of a role. */

import type { fromNodeProviderChain } from '@aws-sdk/credential-providers';
import { loadCredentials } from './libraries.js';

export type AwsCredentialIdentity = Awaited<ReturnType<ReturnType<typeof fromNodeProviderChain>>>;

export interface CredentialOptions {
  readonly region: string;
  readonly endpointUrl: string | undefined;
  readonly profileName: string | undefined;
  readonly roleArn: string | undefined;
  readonly webIdentityTokenFile: string | undefined;
  /** File with profiles; if undefined, the usual one. */
  readonly credentialsFile: string | undefined;
}

const SESSION_NAME = 'nodepool';

/** Resolves with new credentials. Each call creates new provider objects, because Amazon's remember failures. */
export async function readCredentials(options: CredentialOptions): Promise<AwsCredentialIdentity> {
  const { region, endpointUrl, profileName, roleArn, webIdentityTokenFile, credentialsFile } = options;
  const libraries = loadCredentials();
  const clientConfig = { region, maxAttempts: 1, ...(endpointUrl === undefined ? {} : { endpoint: endpointUrl }) };
  const chain = libraries.fromNodeProviderChain({
    clientConfig,
    // The file can change while the program runs.
    ignoreCache: true,
    ...(profileName === undefined ? {} : { profile: profileName }),
    ...(credentialsFile === undefined ? {} : { filepath: credentialsFile }),
  });
  if (roleArn === undefined) return chain();
  if (webIdentityTokenFile === undefined) {
    const params = { RoleArn: roleArn, RoleSessionName: SESSION_NAME };
    return libraries.fromTemporaryCredentials({ params, masterCredentials: chain, clientConfig })();
  }
  return libraries.fromTokenFile({ roleArn, webIdentityTokenFile, roleSessionName: SESSION_NAME, clientConfig })();
}
