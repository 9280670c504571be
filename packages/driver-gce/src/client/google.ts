/** Configures Google's client libraries with the driver's credentials, endpoints and clock, and without retries. */

import type * as ComputeLibrary from '@googleapis/compute/build/v1.js';
import type { compute_v1 } from '@googleapis/compute/build/v1.js';
import type * as StorageLibrary from '@googleapis/storage/build/v1.js';
import type { storage_v1 } from '@googleapis/storage/build/v1.js';
import type * as AuthLibrary from 'google-auth-library';
import type { gaxios as Gaxios } from 'google-auth-library';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import type { AnswerHead, Attempt, Granted, HttpExchange, ProviderContext } from '@nodepool/core';
import { ApiClient, AuthError, boundedAnswer } from '@nodepool/core';
import type { GceProvider } from '../config.js';
import { Credentials, remediedError } from './credentials.js';

/** Loads Google's libraries when a provider starts; parsing a configuration does not require them. */
const load = createRequire(__filename);

const SCOPES = [
  'https://www.googleapis.com/auth/compute',
  'https://www.googleapis.com/auth/devstorage.read_write',
  'https://www.googleapis.com/auth/cloud-platform',
];

const COMPUTE_ENDPOINT = 'https://compute.googleapis.com';
const STORAGE_ENDPOINT = 'https://storage.googleapis.com';
/** Address of the metadata service on machines of Google Cloud. */
const METADATA_HOST = '169.254.169.254';

/** Lifetime of a token that the library signs with a key (ms). */
const SIGNED_LIFE_MS = 3_600_000;
/** Lifetime of a token of a client that does not show the time of expiry (ms). */
const DEFAULT_LIFE_MS = 600_000;
const MAX_ANSWER_BYTES = 32 * 2 ** 20;

/** Options of Google's HTTP client that bound the size of an answer. */
interface HttpClient {
  readonly size: number;
  readonly fetchImplementation?: typeof fetch;
}

/** Options of every call. The caller controls abort signals and retries. */
export interface CallOptions extends HttpClient {
  readonly headers: Headers;
  readonly signal: AbortSignal;
  readonly retry: false;
  readonly adapter: NonNullable<compute_v1.Options['adapter']>;
}

const PROXIES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'] as const;

/** Returns the HTTP client of Node.js; with a proxy in the environment, the libraries' own, which supports it. */
function httpClient(): HttpClient {
  const usesProxy = PROXIES.some((name) => (process.env[name] ?? '') !== '');
  // The libraries' own client refuses longer answers itself.
  return { size: MAX_ANSWER_BYTES, ...(usesProxy ? {} : { fetchImplementation: boundedFetch }) };
}

interface PreparedRequest {
  readonly url: URL;
  readonly method?: string;
  readonly redirect?: 'error' | 'follow' | 'manual';
}

/** Sends a request of Google's HTTP client, and follows redirects. The libraries contain two versions of the client. */
export function redirected<O extends PreparedRequest, A extends AnswerHead>(
  http: HttpExchange,
  options: O,
  send: (options: O) => Promise<A>,
): Promise<A> {
  return http.send(options.url.href, { method: options.method ?? 'GET', isAnswer: isIncomplete }, (url) =>
    send({ ...options, url: new URL(url), redirect: 'manual' }),
  );
}

/** Returns true for the status of uploads that expects more data, which has no address. */
function isIncomplete(status: number, location: string | undefined): boolean {
  return status === 308 && location === undefined;
}

async function boundedFetch(...[address, options]: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(address, options);
  const { body, headers, status, statusText } = response;
  if (body === null) return response;
  const limits = { maxBytes: MAX_ANSWER_BYTES, signal: options?.signal ?? undefined };
  return new Response(Readable.toWeb(Readable.from(boundedAnswer(body, limits))), {
    headers,
    status,
    statusText,
  });
}

export function callOptions({ credentials, http, signal }: Attempt<Headers>): CallOptions {
  return {
    ...httpClient(),
    ...{ headers: new Headers(credentials), signal, retry: false },
    adapter: (options, send) => redirected(http, options, send),
  };
}

export interface Google {
  readonly api: ApiClient<Headers>;
  readonly gaxios: Gaxios.Gaxios;
  readonly compute: compute_v1.Compute;
  readonly storage: storage_v1.Storage;
  /** Without a trailing slash. */
  readonly storageEndpoint: string;
}

/** Creates the clients. Credentials are read by the first call. */
export function connect(
  { credentialsFile, apiEndpoint, storageEndpoint, callsPerSecond }: GceProvider,
  { clock, onApiCall }: Pick<ProviderContext, 'clock' | 'onApiCall'>,
): Google {
  const library = load('google-auth-library') as typeof AuthLibrary;
  const { compute_v1: computeLibrary } = load('@googleapis/compute/build/v1.js') as typeof ComputeLibrary;
  const { storage_v1: storageLibrary } = load('@googleapis/storage/build/v1.js') as typeof StorageLibrary;
  const file = credentialsFile ?? process.env['GOOGLE_APPLICATION_CREDENTIALS'];
  const place =
    file === undefined
      ? `the application default credentials (a file of this user, or the metadata service at ${metadataHost()})`
      : `the credentials in ${file}`;
  const logInAgain = ({ http }: Attempt): Promise<Granted<Headers>> => logIn(library, credentialsFile, http);
  const credentials = new Credentials({ api: () => api, clock, place, logIn: logInAgain });
  const api: ApiClient<Headers> = new ApiClient({
    ...{ clock, onApiCall, callsPerSecond, credentials },
    secrets: () => credentials.secrets,
    errorOf: (error, attempted) => remediedError(attempted, error, place),
  });
  const storageUrl = withoutSlash(storageEndpoint ?? STORAGE_ENDPOINT);
  return {
    api,
    gaxios: new library.gaxios.Gaxios(),
    compute: new computeLibrary.Compute({ rootUrl: `${withoutSlash(apiEndpoint ?? COMPUTE_ENDPOINT)}/` }),
    storage: new storageLibrary.Storage({ rootUrl: `${storageUrl}/` }),
    storageEndpoint: storageUrl,
  };
}

/**
 * Reads the credentials and gets the headers of authenticated calls. Each login uses new objects: those of the library
 * share a pending request without end. It also remembers for the process that there was no metadata service.
 */
async function logIn(
  { GoogleAuth, gcpMetadata, JWT }: typeof AuthLibrary,
  credentialsFile: string | undefined,
  http: HttpExchange,
): Promise<Granted<Headers>> {
  gcpMetadata.resetIsAvailableCache();
  const auth = new GoogleAuth({
    scopes: SCOPES,
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- The operator's configuration names the file.
    ...(credentialsFile === undefined ? {} : { keyFilename: credentialsFile }),
    // A token service may send JSON with another content type.
    clientOptions: {
      transporterOptions: {
        ...httpClient(),
        responseType: 'json',
        adapter: (options, send) => redirected(http, options, send),
      },
    },
  });
  // A service account key can sign tokens locally, without a round trip (https://google.aip.dev/auth/4111).
  auth.useJWTAccessWithScope = true;
  const client = await auth.getClient().catch((error: unknown) => {
    throw isMissing(error) ? noCredentials(error) : error;
  });
  const token = await client.getRequestHeaders();
  if (client instanceof JWT) return { token, lifeMs: SIGNED_LIFE_MS, status: undefined };
  const { expiry_date: expiry } = client.credentials;
  return { token, lifeMs: typeof expiry === 'number' ? expiry - Date.now() : DEFAULT_LIFE_MS, status: 200 };
}

/** Returns true if the library found neither a file nor a metadata service. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Could not load the default credentials');
}

function noCredentials(cause: unknown): AuthError {
  return new AuthError(
    `no credentials: there is no file, and the metadata service at ${metadataHost()} does not answer; set "credentials-file", or GOOGLE_APPLICATION_CREDENTIALS, or run the launcher on a machine of Google Cloud with a service account`,
    { cause },
  );
}

function metadataHost(): string {
  return process.env['GCE_METADATA_HOST'] ?? METADATA_HOST;
}

function withoutSlash(url: string): string {
  return url.replace(/\/$/, '');
}
