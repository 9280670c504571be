/**
 * The credentials file: JSON as written by `az ad sp create-for-rbac --sdk-auth`, with the cloud's endpoints. Two
 * fields are Nodepool's own: `caFile`, a PEM file with the authorities for a private endpoint, and `authentication`,
 * for logins without a secret.
 */

import { ConfigurationError, fileFaultOf, isJsonObject, stringAt, type JsonObject } from '@nodepool/core';
import { readFileSync } from 'node:fs';

export type Login =
  | { readonly kind: 'secret'; readonly tenantId: string; readonly clientId: string; readonly clientSecret: string }
  /** Identity of the host; without `clientId`, the system-assigned one. */
  | { readonly kind: 'managed-identity'; readonly clientId: string | undefined }
  /** Token file of Kubernetes. Undefined values are read from the `AZURE_…` variables that Kubernetes' webhook sets. */
  | {
      readonly kind: 'workload-identity';
      readonly tenantId: string | undefined;
      readonly clientId: string | undefined;
      readonly tokenFile: string | undefined;
    };

export interface AzureAuth {
  readonly subscriptionId: string;
  readonly login: Login;
  /** URL of the login service without a trailing slash. */
  readonly authorityHost: string;
  /** URL of the resource manager without a trailing slash. */
  readonly endpoint: string;
  /** PEM; if undefined, the system's authorities are trusted. */
  readonly ca: string | undefined;
}

const PUBLIC_AUTHORITY = 'https://login.microsoftonline.com';
const PUBLIC_ENDPOINT = 'https://management.azure.com';

/** Reads the file. Throws `ConfigurationError` if something is missing. The message never contains a secret. */
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

function parse(path: string): JsonObject {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`cannot read the Azure credentials in ${path}: ${fileFaultOf(error)}`, {
      cause: error,
    });
  }
  let value: unknown;
  try {
    // Some Microsoft tools write a byte order mark.
    value = JSON.parse(content.replace(/^\uFEFF/, ''));
  } catch {
    // The parser's message is omitted because it quotes the content, which is secret.
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
    throw new ConfigurationError(
      `cannot read the certificates in ${caFile}, which is caFile in ${path}: ${fileFaultOf(error)}`,
      {
        cause: error,
      },
    );
  }
}
