/** HTTP connections with one set of credentials of a cluster. */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createSecureContext } from 'node:tls';
import { AuthError, ConfigurationError, fileFaultOf, reasonOf, type Clock, type HttpExchange } from '@nodepool/core';
import type * as Undici from 'undici';
import type { ClusterAccess, Environment } from './kubeconfig.js';

type Dispatcher = Undici.Dispatcher;

/** Loads undici when a provider starts. Parsing a configuration does not require it. */
function loadUndici(): typeof Undici {
  return createRequire(__filename)('undici') as typeof Undici;
}

/** Maximum number of connections for calls. Watches have connections of their own. */
const CONNECTIONS = 64;
const CONNECT_TIMEOUT_MS = 20_000;
/** Interval of probes on connections without traffic, which find a dead peer of a watch (ms). */
const PROBE_MS = 30_000;
/** Time after which a token file is read again (ms). The kubelet replaces the tokens of service accounts. */
const TOKEN_AGE_MS = 60_000;

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  readonly http: HttpExchange;
}

/** An answer whose body has not been read. */
export interface Response {
  readonly status: number;
  readonly headers: Undici.Dispatcher.ResponseData['headers'];
  readonly body: Undici.Dispatcher.ResponseData['body'];
}

export class Connections {
  private readonly dispatchers: Readonly<Record<'calls' | 'watches', Dispatcher>>;
  private fileToken: string | undefined;
  private tokenReadAt = -Infinity;

  /** Throws `ConfigurationError` if a certificate or the key is invalid, or if they do not belong together. */
  constructor(
    readonly access: ClusterAccess,
    env: Environment['env'],
    private readonly clock: Clock,
  ) {
    checkCertificates(access);
    const undici = loadUndici();
    this.dispatchers = {
      calls: dispatcher(undici, access, env, CONNECTIONS),
      watches: dispatcher(undici, access, env, null),
    };
  }

  /** Resolves with the user's token; undefined if the user has none. */
  async token(): Promise<string | undefined> {
    const { token, tokenFile } = this.access;
    return tokenFile === undefined ? token : this.freshToken(tokenFile);
  }

  /** Lets the next call read the token file again. */
  expireToken(): void {
    this.tokenReadAt = -Infinity;
  }

  /** Resolves with the header of the credentials; undefined if a client certificate replaces it. */
  async authorization(): Promise<string | undefined> {
    const { basic } = this.access;
    const token = await this.token();
    if (token !== undefined) return `Bearer ${token}`;
    if (basic === undefined) return undefined;
    return `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString('base64')}`;
  }

  /** The values that must not appear in texts. */
  get secrets(): readonly (string | undefined)[] {
    const { token, basic } = this.access;
    return [token, this.fileToken, basic?.password];
  }

  /** Resolves when the server has answered; the body of a watch continues. */
  request(
    { http, ...request }: HttpRequest,
    use: 'calls' | 'watches',
    authorization: string | undefined,
  ): Promise<Response> {
    const { method, path } = request;
    return http.send(this.access.server + path, { method }, (url) => this.send(url, request, use, authorization));
  }

  private async send(
    url: string,
    { method, body, signal }: Omit<HttpRequest, 'http'>,
    use: 'calls' | 'watches',
    authorization: string | undefined,
  ): Promise<Response> {
    const { origin, pathname, search } = new URL(url);
    const response = await this.dispatchers[use].request({
      origin,
      path: pathname + search,
      method,
      signal,
      headers: {
        accept: 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
    });
    const { statusCode: status, headers } = response;
    if (status >= 300 && status < 400) await response.body.dump();
    return { status, headers, body: response.body };
  }

  /** Closes all connections when their calls and watches have ended. No further call is possible. */
  async close(): Promise<void> {
    await Promise.all(Object.values(this.dispatchers).map((each) => each.close()));
  }

  /** Aborts all calls and watches, and closes the connections. */
  async destroy(): Promise<void> {
    await Promise.all(Object.values(this.dispatchers).map((each) => each.destroy()));
  }

  private async freshToken(file: string): Promise<string> {
    const now = this.clock.monotonic();
    if (this.fileToken !== undefined && now - this.tokenReadAt < TOKEN_AGE_MS) return this.fileToken;
    try {
      this.fileToken = (await readFile(file, 'utf8')).trim();
    } catch (error) {
      throw new AuthError(`${this.access.source}: the token file ${file} cannot be read: ${fileFaultOf(error)}`, {
        cause: error,
      });
    }
    this.tokenReadAt = now;
    return this.fileToken;
  }
}

function checkCertificates({ ca, clientCert, clientKey, source }: ClusterAccess): void {
  try {
    createSecureContext({ ca, cert: clientCert, key: clientKey });
  } catch (error) {
    throw new ConfigurationError(`${source}: its certificates or its key are invalid: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

function dispatcher(
  { Agent, EnvHttpProxyAgent }: typeof Undici,
  access: ClusterAccess,
  env: Environment['env'],
  connections: number | null,
): Dispatcher {
  const { ca, insecure, serverName, clientCert, clientKey } = access;
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: PROBE_MS,
    rejectUnauthorized: !insecure,
    ...(ca === undefined ? {} : { ca }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(clientCert === undefined ? {} : { cert: clientCert }),
    ...(clientKey === undefined ? {} : { key: clientKey }),
  };
  // Callers set their own deadlines on their own clock.
  const options = { connect, connections, headersTimeout: 0, bodyTimeout: 0 };
  const httpProxy = env['http_proxy'] ?? env['HTTP_PROXY'];
  const httpsProxy = env['https_proxy'] ?? env['HTTPS_PROXY'];
  const noProxy = env['no_proxy'] ?? env['NO_PROXY'];
  if (httpProxy === undefined && httpsProxy === undefined) return new Agent(options);
  return new EnvHttpProxyAgent({
    ...options,
    requestTls: connect,
    ...(httpProxy === undefined ? {} : { httpProxy }),
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    ...(noProxy === undefined ? {} : { noProxy }),
  });
}
