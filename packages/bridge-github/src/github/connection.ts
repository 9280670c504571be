/**
 * The way from the credentials of an installation to the Actions service: App token, installation token, registration
 * token, and finally the address and the token of the service, which is renewed before it expires.
 */

import {
  isJsonObject,
  fileFaultOf,
  reasonOf,
  type Clock,
  type JsonObject,
  type JsonValue,
  type Logger,
} from '@nodepool/core';
import { appToken, lifetimeOf } from './app-token.js';
import { GithubError, isUnauthorized } from './errors.js';
import { isSafeAddress, type HttpAnswer, type HttpCall, type HttpClient } from './http.js';
import type { GithubScope } from './scope.js';

/** The token is renewed this long before it expires (ms), or after four fifths of its life if that is later. */
const RENEW_BEFORE_MS = 60_000;
const RENEW_AFTER = 0.8;
/** Lifetime of a token that does not tell its own (ms). */
const UNKNOWN_LIFE_MS = 600_000;
/** Differences of clocks that matter to no token (ms). */
const CLOCK_TOLERANCE_MS = 20_000;
const API_VERSION = '6.0-preview';

export type Credentials =
  | { readonly kind: 'token'; readonly file: string }
  | { readonly kind: 'app'; readonly clientId: string; readonly installationId: number; readonly keyFile: string };

export interface ConnectionOptions {
  readonly scope: GithubScope;
  readonly credentials: Credentials;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reads a key or a token. */
  readonly readFile: (file: string) => Promise<string>;
  /** System information in the header `User-Agent`, which the Actions service needs. */
  readonly userAgent: string;
}

interface Admin {
  readonly url: string;
  readonly token: string;
  /** `Clock.monotonic` milliseconds. */
  readonly renewAt: number;
}

/** A call to the Actions service; `path` is relative to the address of the tenant. */
export interface ServiceCall extends Pick<HttpCall, 'operation' | 'method' | 'json' | 'timeoutMs'> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Token of a message queue, instead of the one of the tenant. */
  readonly token?: string;
}

export class Connection {
  private admin: Admin | undefined;
  private login: Promise<Admin> | undefined;
  /** GitHub's time minus the time of this host, milliseconds. */
  private clockOffsetMs = 0;

  constructor(private readonly options: ConnectionOptions) {}

  /** Calls the Actions service, a second time with new tokens if it refuses the present ones. */
  async call(call: ServiceCall, signal: AbortSignal): Promise<HttpAnswer> {
    const admin = await this.connected(signal);
    try {
      return await this.send(admin, call, signal);
    } catch (error) {
      if (!isUnauthorized(error) || call.token !== undefined) throw error;
      if (this.admin === admin) this.admin = undefined;
      return await this.send(await this.connected(signal), call, signal);
    }
  }

  /** Calls an address that the service has named, such as that of a message queue. */
  async callQueue(
    call: Pick<HttpCall, 'operation' | 'method' | 'url' | 'timeoutMs'> & { readonly token: string },
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const { http, userAgent } = this.options;
    const { token, ...rest } = call;
    const accept = `application/json; api-version=${API_VERSION}`;
    const all = { authorization: `Bearer ${token}`, 'user-agent': userAgent, accept, ...headers };
    return await http.send({ ...rest, headers: all }, signal);
  }

  private async send(admin: Admin, call: ServiceCall, signal: AbortSignal): Promise<HttpAnswer> {
    const { http, userAgent } = this.options;
    const { path, query = {}, token = admin.token, ...rest } = call;
    const url = new URL(`${admin.url.replace(/\/+$/, '')}/${path}`);
    for (const [name, value] of Object.entries({ ...query, 'api-version': API_VERSION })) {
      url.searchParams.set(name, value);
    }
    const headers = { authorization: `Bearer ${token}`, 'user-agent': userAgent };
    return await http.send({ ...rest, url: url.href, headers }, signal);
  }

  private async connected(signal: AbortSignal): Promise<Admin> {
    const { admin } = this;
    if (admin !== undefined && this.options.clock.monotonic() < admin.renewAt) return admin;
    this.login ??= this.logIn(signal).finally(() => (this.login = undefined));
    return await this.login;
  }

  private async logIn(signal: AbortSignal): Promise<Admin> {
    const { scope, clock } = this.options;
    const registration = await this.post(
      {
        operation: 'registrationToken',
        path: scope.registrationPath,
        authorization: `Bearer ${await this.apiToken(signal)}`,
      },
      signal,
    );
    const json = { url: scope.url, runner_event: 'register' };
    const authorization = `RemoteAuth ${textIn(registration, 'token', 'registrationToken')}`;
    const answer = await this.post(
      { operation: 'register', path: '/actions/runner-registration', authorization, json },
      signal,
    );
    const url = textIn(answer, 'url', 'register');
    if (!isSafeAddress(url))
      throw new GithubError(`register: the address ${url} is not safe`, undefined, '', undefined);
    const token = textIn(answer, 'token', 'register');
    const lifeMs = lifetimeOf(token, clock.now() + this.clockOffsetMs) ?? UNKNOWN_LIFE_MS;
    const renewAt = clock.monotonic() + Math.max(lifeMs - RENEW_BEFORE_MS, lifeMs * RENEW_AFTER);
    this.admin = { url, token, renewAt };
    return this.admin;
  }

  /** Resolves with the token for the REST API: that of the file, or a new one of the App's installation. */
  private async apiToken(signal: AbortSignal): Promise<string> {
    const { credentials, clock } = this.options;
    if (credentials.kind === 'token') return (await this.readSecret(credentials.file)).trim();
    const { clientId, installationId, keyFile } = credentials;
    const key = await this.readSecret(keyFile);
    const path = `/app/installations/${installationId}/access_tokens`;
    const offsetMs = this.clockOffsetMs;
    const attempt = async (): Promise<string> => {
      const authorization = `Bearer ${signed(clientId, key, keyFile, clock.now() + this.clockOffsetMs)}`;
      const answer = await this.post({ operation: 'installationToken', path, authorization }, signal);
      return textIn(answer, 'token', 'installationToken');
    };
    try {
      return await attempt();
    } catch (error) {
      // GitHub refuses tokens of a clock that is off; its answer contains the time.
      if (!isUnauthorized(error) || offsetMs === this.clockOffsetMs) throw error;
      return await attempt();
    }
  }

  private async readSecret(file: string): Promise<string> {
    try {
      return await this.options.readFile(file);
    } catch (error) {
      throw new GithubError(`${file} cannot be read: ${fileFaultOf(error)}`, undefined, '', undefined, {
        cause: error,
      });
    }
  }

  /** Notes GitHub's time (ms). Small differences are those of the network and of whole seconds. */
  private noteTime(now: number): void {
    const { clock, log } = this.options;
    const offsetMs = now - clock.now();
    if (Math.abs(offsetMs - this.clockOffsetMs) < CLOCK_TOLERANCE_MS) return;
    this.clockOffsetMs = Math.abs(offsetMs) < CLOCK_TOLERANCE_MS ? 0 : offsetMs;
    log.warn("The clock of this host differs from GitHub's; tokens use GitHub's time", {
      seconds: Math.round(offsetMs / 1000),
    });
  }

  private async post(
    call: {
      readonly operation: string;
      readonly path: string;
      readonly authorization: string;
      readonly json?: JsonValue;
    },
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const { http, scope, userAgent } = this.options;
    const { operation, path, authorization, json } = call;
    const headers = { authorization, 'user-agent': userAgent };
    const onTime = (now: number): void => this.noteTime(now);
    const body = json === undefined ? {} : { json };
    const url = scope.apiUrl + path;
    const answer = await http.send({ operation, method: 'POST', url, headers, onTime, ...body }, signal);
    if (isJsonObject(answer.json)) return answer.json;
    throw new GithubError(`${operation}: the answer is empty`, answer.status, '', undefined);
  }
}

function signed(clientId: string, key: string, keyFile: string, now: number): string {
  try {
    return appToken(clientId, key, now);
  } catch (error) {
    const message = `${keyFile} is not a private key in PEM format: ${reasonOf(error)}`;
    throw new GithubError(message, undefined, '', undefined, { cause: error });
  }
}

function textIn(value: JsonObject, name: string, operation: string): string {
  const found = value[name];
  if (typeof found === 'string' && found !== '') return found;
  throw new GithubError(`${operation}: the answer has no "${name}"`, undefined, '', undefined);
}
