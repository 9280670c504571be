/** A minimal client of the OpenStack APIs for test cases: it logs in, resolves endpoints, and returns raw answers. */

import { readFile } from 'node:fs/promises';
import { answerText, isJsonObject, systemClock, type JsonObject, type JsonValue } from '@nodepool/core';
import { parse } from 'yaml';
import type { ServiceName } from '../services.js';

/** Time limit of a call (ms). Creations are slow on a machine under load. */
const CALL_TIMEOUT_MS = 90_000;
/** Polling interval (ms). */
const POLL_MS = 100;
const UNTIL_TIMEOUT_MS = 90_000;

const CATALOG_TYPES: Readonly<Record<Exclude<ServiceName, 'identity'>, string>> = {
  compute: 'compute',
  image: 'image',
  network: 'network',
  volume: 'volumev3',
};

export interface RequestParts {
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged. */
  readonly data?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Overrides the client's token; null sends none. */
  readonly token?: string | null;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Returns the body as a JSON object. Throws if it is not one. */
  json(): JsonObject;
  /** Returns an object in the body, e.g. `server`. */
  member(key: string): JsonObject;
  /** Returns a list of objects in the body, e.g. `servers`. */
  list(key: string): readonly JsonObject[];
}

export class ApiClient {
  private constructor(
    readonly authUrl: string,
    /** Body of the token request. */
    readonly credentials: JsonObject,
    readonly token: string,
    readonly projectId: string,
    readonly userId: string,
    private readonly endpoints: ReadonlyMap<string, string>,
  ) {}

  /** Logs in to a cloud of a clouds.yaml. */
  static async logIn(cloudsYaml: string, cloud: string): Promise<ApiClient> {
    const { authUrl, credentials } = await readCloud(cloudsYaml, cloud);
    const answer = await send(`${authUrl}/auth/tokens`, 'POST', { json: credentials, token: null }, '');
    if (answer.status !== 201) throw new Error(`${cloud} cannot log in at ${authUrl}: ${answer.status} ${answer.text}`);
    const token = answer.member('token');
    const endpoints = listOf(token['catalog']).map((entry): [string, string] => [
      textOf(entry['type']),
      textOf(listOf(entry['endpoints']).find((endpoint) => endpoint['interface'] === 'public')?.['url']),
    ]);
    const [project, user] = [token['project'], token['user']];
    return new ApiClient(
      authUrl,
      credentials,
      answer.headers.get('x-subject-token') ?? '',
      textOf(isJsonObject(project) ? project['id'] : undefined),
      textOf(isJsonObject(user) ? user['id'] : undefined),
      new Map(endpoints),
    );
  }

  /** Returns a service's URL, for keystone from clouds.yaml, for other services from the catalog. */
  endpoint(service: ServiceName): string {
    if (service === 'identity') return this.authUrl;
    const endpoint = this.endpoints.get(CATALOG_TYPES[service]);
    if (endpoint === undefined) throw new Error(`the catalog has no ${CATALOG_TYPES[service]}`);
    // The endpoints of neutron and glance are registered without a version.
    if (service === 'image') return `${endpoint}/v2`;
    return service === 'network' ? `${endpoint}/v2.0` : endpoint;
  }

  get(service: ServiceName, path: string, request: RequestParts = {}): Promise<ApiAnswer> {
    return this.call(service, 'GET', path, request);
  }

  post(service: ServiceName, path: string, json: unknown, request: RequestParts = {}): Promise<ApiAnswer> {
    return this.call(service, 'POST', path, { json, ...request });
  }

  put(service: ServiceName, path: string, json: unknown): Promise<ApiAnswer> {
    return this.call(service, 'PUT', path, { json });
  }

  delete(service: ServiceName, path: string): Promise<ApiAnswer> {
    return this.call(service, 'DELETE', path, {});
  }

  call(service: ServiceName, method: string, path: string, request: RequestParts): Promise<ApiAnswer> {
    return send(this.endpoint(service) + path, method, request, this.token);
  }

  /** Calls an absolute URL, e.g. a link. */
  at(url: string, request: RequestParts = {}): Promise<ApiAnswer> {
    return send(url, 'GET', request, this.token);
  }

  /** Repeats a call until the answer satisfies the condition. Rejects with the last answer on timeout. */
  async until(
    service: ServiceName,
    path: string,
    wanted: (answer: ApiAnswer) => boolean | Promise<boolean>,
  ): Promise<ApiAnswer> {
    const deadline = systemClock.monotonic() + UNTIL_TIMEOUT_MS;
    for (;;) {
      const answer = await this.get(service, path);
      if (await wanted(answer)) return answer;
      if (systemClock.monotonic() > deadline) {
        throw new Error(`GET ${path} was not as wanted in ${UNTIL_TIMEOUT_MS} ms: ${answer.status} ${answer.text}`);
      }
      await new Promise<void>((resolve) => systemClock.schedule(POLL_MS, () => resolve()));
    }
  }
}

async function readCloud(
  file: string,
  name: string,
): Promise<{ readonly authUrl: string; readonly credentials: JsonObject }> {
  const content = parse(await readFile(file, 'utf8')) as JsonValue;
  const clouds = isJsonObject(content) ? content['clouds'] : undefined;
  const cloud = isJsonObject(clouds) ? clouds[name] : undefined;
  const auth = isJsonObject(cloud) ? cloud['auth'] : undefined;
  if (!isJsonObject(cloud) || !isJsonObject(auth)) throw new Error(`${file} has no cloud ${name} with an auth section`);
  const user = { name: auth['username'] ?? '', domain: { name: auth['user_domain_name'] ?? '' } };
  const authUrl = textOf(auth['auth_url']);
  if (cloud['auth_type'] === 'v3applicationcredential') {
    const { application_credential_name, application_credential_secret } = auth;
    const application_credential = {
      name: application_credential_name ?? '',
      secret: application_credential_secret ?? '',
      user,
    };
    return {
      authUrl,
      credentials: { auth: { identity: { methods: ['application_credential'], application_credential } } },
    };
  }
  const identity = { methods: ['password'], password: { user: { ...user, password: auth['password'] ?? '' } } };
  const project = { name: auth['project_name'] ?? '', domain: { name: auth['project_domain_name'] ?? '' } };
  return { authUrl, credentials: { auth: { identity, scope: { project } } } };
}

async function send(url: string, method: string, request: RequestParts, token: string): Promise<ApiAnswer> {
  const own = request.token === undefined ? token : request.token;
  const body = request.json === undefined ? request.data : JSON.stringify(request.json);
  const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
  const response = await fetch(url, {
    method,
    signal,
    headers: {
      ...(own === null ? {} : { 'X-Auth-Token': own }),
      ...(request.json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...request.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await answerText(response.body, { signal });
  const json = (): JsonObject => {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) throw new Error(`${method} ${url}: not a JSON object: ${text}`);
    return value;
  };
  return {
    status: response.status,
    headers: response.headers,
    text,
    json,
    member: (key) => {
      const value = json()[key];
      if (!isJsonObject(value)) throw new Error(`${method} ${url}: no object ${key} in ${response.status} ${text}`);
      return value;
    },
    list: (key) => listOf(json()[key]),
  };
}

/** Returns the objects of a list, or none if it is not a list. */
export function listOf(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** Returns a string, or an empty one if it is not a string. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
