/** Google's client libraries as this driver uses them: our credentials, our endpoints, our time, none of their retries. */

import type * as ComputeLibrary from '@googleapis/compute/build/v1.js';
import type { compute_v1 } from '@googleapis/compute/build/v1.js';
import type * as StorageLibrary from '@googleapis/storage/build/v1.js';
import type { storage_v1 } from '@googleapis/storage/build/v1.js';
import type * as AuthLibrary from 'google-auth-library';
import type { GoogleAuth } from 'google-auth-library';
import { createRequire } from 'node:module';
import type { GceProvider } from '../config.js';

/** Loads Google's libraries when a provider starts: reading a configuration needs none of them. */
const load = createRequire(__filename);

const SCOPES = [
  'https://www.googleapis.com/auth/compute',
  'https://www.googleapis.com/auth/devstorage.read_write',
  'https://www.googleapis.com/auth/cloud-platform',
];

const COMPUTE_ENDPOINT = 'https://compute.googleapis.com';
const STORAGE_ENDPOINT = 'https://storage.googleapis.com';

/** Options of each call: who calls decides over signals and repetitions. */
export interface CallOptions extends HttpClient {
  readonly signal: AbortSignal;
  readonly retry: false;
}

interface HttpClient {
  readonly fetchImplementation?: typeof fetch;
}

const PROXIES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'] as const;

/** That of Node.js; the libraries' own, which knows proxies, where the environment names one. */
function httpClient(): HttpClient {
  return PROXIES.some((name) => (process.env[name] ?? '') !== '') ? {} : { fetchImplementation: fetch };
}

export function callOptions(signal: AbortSignal): CallOptions {
  return { signal, retry: false, ...httpClient() };
}

export interface Google {
  readonly auth: GoogleAuth;
  readonly compute: compute_v1.Compute;
  readonly storage: storage_v1.Storage;
  /** Without slash at its end. */
  readonly storageEndpoint: string;
}

/** Reads no credentials yet: the first call does. */
export function connect({ credentialsFile, apiEndpoint, storageEndpoint }: GceProvider): Google {
  const { GoogleAuth: Auth } = load('google-auth-library') as typeof AuthLibrary;
  const { compute_v1: computeLibrary } = load('@googleapis/compute/build/v1.js') as typeof ComputeLibrary;
  const { storage_v1: storageLibrary } = load('@googleapis/storage/build/v1.js') as typeof StorageLibrary;
  const auth = new Auth({
    scopes: SCOPES,
    ...(credentialsFile === undefined ? {} : { keyFilename: credentialsFile }),
    clientOptions: { transporterOptions: { ...httpClient() } },
  });
  // The key of a service account signs tokens by itself, without a round trip (https://google.aip.dev/auth/4111).
  auth.useJWTAccessWithScope = true;
  const storageUrl = withoutSlash(storageEndpoint ?? STORAGE_ENDPOINT);
  return {
    auth,
    compute: new computeLibrary.Compute({ auth, rootUrl: `${withoutSlash(apiEndpoint ?? COMPUTE_ENDPOINT)}/` }),
    storage: new storageLibrary.Storage({ auth, rootUrl: `${storageUrl}/` }),
    storageEndpoint: storageUrl,
  };
}

function withoutSlash(url: string): string {
  return url.replace(/\/$/, '');
}
