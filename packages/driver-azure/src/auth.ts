/**
 * The file with the credentials: JSON as `az ad sp create-for-rbac --sdk-auth` writes it, with the endpoints of the cloud.
 * Two fields are ours: `caFile`, a PEM file with the authorities that signed the certificate of a private endpoint, and
 * `authentication`, for logins without a secret.
 */

import { ConfigurationError, isJsonObject, stringAt, type JsonObject } from '@nodepool/core';
import { readFileSync } from 'node:fs';

export type Login =
  | { readonly kind: 'secret'; readonly tenantId: string; readonly clientId: string; readonly clientSecret: string }
  /** Identity of the machine that this runs on; without `clientId` the one that the system assigned. */
  | { readonly kind: 'managed-identity'; readonly clientId: string | undefined }
  /** Token that Kubernetes writes to a file. Undefined: the variables `AZURE_…` that its webhook sets. */
  | {
      readonly kind: 'workload-identity';
      readonly tenantId: string | undefined;
      readonly clientId: string | undefined;
      readonly tokenFile: string | undefined;
    };

export interface AzureAuth {
  readonly subscriptionId: string;
  readonly login: Login;
  /** Of the login service, without a slash at its end. */
  readonly authorityHost: string;
  /** Of the resource manager, without a slash at its end. */
  readonly endpoint: string;
  /** PEM; undefined: what the system trusts. */
  readonly ca: string | undefined;
}

const PUBLIC_AUTHORITY = 'https://login.microsoftonline.com';
const PUBLIC_ENDPOINT = 'https://management.azure.com';

/** Reads the file. Throws `ConfigurationError`, which says what is missing; never with a secret in its message. */
export function readAuth(path: string | undefined): AzureAuth {
  if (path === undefined) {
    throw new ConfigurationError('there are no credentials: set "auth-path" of the provider, or AZURE_AUTH_LOCATION');
  }
  const file = parse(path);
  const text = (key: string): string => {
    const value = stringAt(file, key);
    if (value === undefined || value === '') throw new ConfigurationError(`${path}: ${key} is missing, or no text`);
    return value;
  };
  return {
    subscriptionId: text('subscriptionId'),
    login: loginIn(file, path, text),
    authorityHost: endpointAt(file, 'activeDirectoryEndpointUrl', path) ?? PUBLIC_AUTHORITY,
    endpoint: endpointAt(file, 'resourceManagerEndpointUrl', path) ?? PUBLIC_ENDPOINT,
    ca: readCa(path, stringAt(file, 'caFile')),
  };
}

function loginIn(file: JsonObject, path: string, text: (key: string) => string): Login {
  const kind = stringAt(file, 'authentication') ?? 'secret';
  const [tenantId, clientId] = [stringAt(file, 'tenantId'), stringAt(file, 'clientId')];
  switch (kind) {
    case 'secret':
      return { kind, tenantId: text('tenantId'), clientId: text('clientId'), clientSecret: text('clientSecret') };
    case 'managed-identity':
      return { kind, clientId };
    case 'workload-identity':
      return { kind, tenantId, clientId, tokenFile: stringAt(file, 'federatedTokenFile') };
    default:
      throw new ConfigurationError(
        `${path}: authentication must be "secret", "managed-identity" or "workload-identity"`,
      );
  }
}

/** The file is asked for anew with each start, so that credentials can be replaced. */
function parse(path: string): JsonObject {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`cannot read the Azure credentials in ${path}`, { cause: error });
  }
  let value: unknown;
  try {
    // Some tools of Microsoft's begin their files with a byte order mark.
    value = JSON.parse(content.replace(/^\uFEFF/, ''));
  } catch {
    // The parser's message quotes the content, which is secret.
    throw new ConfigurationError(
      `${path} is not JSON; it is expected as "az ad sp create-for-rbac --sdk-auth" writes it`,
    );
  }
  if (!isJsonObject(value)) throw new ConfigurationError(`${path} holds no JSON object`);
  return value;
}

function endpointAt(file: JsonObject, key: string, path: string): string | undefined {
  const value = stringAt(file, key);
  if (value === undefined || value === '') return undefined;
  if (!URL.canParse(value) || !value.startsWith('https://')) {
    throw new ConfigurationError(`${path}: ${key} must be an https URL, not ${JSON.stringify(value)}`);
  }
  return value.replace(/\/+$/, '');
}

function readCa(path: string, caFile: string | undefined): string | undefined {
  if (caFile === undefined) return undefined;
  try {
    return readFileSync(caFile, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`cannot read the certificates in ${caFile}, which is caFile in ${path}`, {
      cause: error,
    });
  }
}
