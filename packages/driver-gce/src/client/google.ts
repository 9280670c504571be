/** Configures Google's client libraries with the driver's credentials, endpoints and clock, and without retries. */

import type * as ComputeLibrary from '@googleapis/compute/build/v1.js';
import type { compute_v1 } from '@googleapis/compute/build/v1.js';
import type * as StorageLibrary from '@googleapis/storage/build/v1.js';
import type { storage_v1 } from '@googleapis/storage/build/v1.js';
import type * as AuthLibrary from 'google-auth-library';
import type { GoogleAuth } from 'google-auth-library';
import { createRequire } from 'node:module';
import type { GceProvider } from '../config.js';
import { Credentials } from './credentials.js';

/** Loads Google's libraries when a provider starts; parsing a configuration does not require them. */
const load = createRequire(__filename);

const SCOPES = [
  'https://www.googleapis.com/auth/compute',
  'https://www.googleapis.com/auth/devstorage.read_write',
  'https://www.googleapis.com/auth/cloud-platform',
];

const COMPUTE_ENDPOINT = 'https://compute.googleapis.com';
const STORAGE_ENDPOINT = 'https://storage.googleapis.com';

/** Options of every call. The caller controls abort signals and retries. */
export interface CallOptions extends HttpClient {
  readonly auth: GoogleAuth;
  readonly signal: AbortSignal;
  readonly retry: false;
}

interface HttpClient {
  readonly fetchImplementation?: typeof fetch;
}

const PROXIES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'] as const;

/**
 * Returns the HTTP client of Node.js, or the libraries' own if the environment names a proxy, which only that one
 * supports.
 */
function httpClient(): HttpClient {
  return PROXIES.some((name) => (process.env[name] ?? '') !== '') ? {} : { fetchImplementation: fetch };
}

export function callOptions(auth: GoogleAuth, signal: AbortSignal): CallOptions {
  return { auth, signal, retry: false, ...httpClient() };
}

export interface Google {
  readonly credentials: Credentials;
  readonly compute: compute_v1.Compute;
  readonly storage: storage_v1.Storage;
  /** Without a trailing slash. */
  readonly storageEndpoint: string;
}

/** Creates the clients. Credentials are read by the first call. */
export function connect({ credentialsFile, apiEndpoint, storageEndpoint }: GceProvider): Google {
  const { GoogleAuth: Auth } = load('google-auth-library') as typeof AuthLibrary;
  const { compute_v1: computeLibrary } = load('@googleapis/compute/build/v1.js') as typeof ComputeLibrary;
  const { storage_v1: storageLibrary } = load('@googleapis/storage/build/v1.js') as typeof StorageLibrary;
  const read = (): GoogleAuth => {
    const auth = new Auth({
      scopes: SCOPES,
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- The operator's configuration names the file.
      ...(credentialsFile === undefined ? {} : { keyFilename: credentialsFile }),
      clientOptions: { transporterOptions: { ...httpClient() } },
    });
    // A service account key can sign tokens locally, without a round trip (https://google.aip.dev/auth/4111).
    auth.useJWTAccessWithScope = true;
    return auth;
  };
  const storageUrl = withoutSlash(storageEndpoint ?? STORAGE_ENDPOINT);
  return {
    credentials: new Credentials(read, credentialsFile ?? process.env['GOOGLE_APPLICATION_CREDENTIALS']),
    compute: new computeLibrary.Compute({ rootUrl: `${withoutSlash(apiEndpoint ?? COMPUTE_ENDPOINT)}/` }),
    storage: new storageLibrary.Storage({ rootUrl: `${storageUrl}/` }),
    storageEndpoint: storageUrl,
  };
}

function withoutSlash(url: string): string {
  return url.replace(/\/$/, '');
}
