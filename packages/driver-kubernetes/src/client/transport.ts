/** HTTP with the credentials of a cluster. */

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { AuthError, reasonOf, type Clock } from '@nodepool/core';
import type * as Undici from 'undici';
import type { ClusterAccess, Environment } from './kubeconfig.js';

type Dispatcher = Undici.Dispatcher;
/** The parts of undici that the published package contains as a bundle. */
type Parts = Pick<typeof Undici, 'Agent' | 'EnvHttpProxyAgent'>;

/** Loads undici when a provider starts. Parsing a configuration does not require it. */
function loadUndici(): Parts {
  return createRequire(__filename)('#undici') as Parts;
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
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

export interface HttpStream {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

export class Transport {
  private readonly calls: Dispatcher;
  private readonly watches: Dispatcher;
  private fileToken: string | undefined;
  private tokenReadAt = -Infinity;

  constructor(
    private readonly access: ClusterAccess,
    env: Environment['env'],
    private readonly clock: Clock,
  ) {
    const undici = loadUndici();
    this.calls = dispatcher(undici, access, env, CONNECTIONS);
    this.watches = dispatcher(undici, access, env, null);
  }

  async send(message: HttpRequest): Promise<HttpAnswer> {
    const { statusCode, headers, body } = await this.request(message, this.calls);
    return { status: statusCode, retryAfter: single(headers['retry-after']), text: await body.text() };
  }

  /** Resolves when the server has accepted the watch. The body ends with an error when the signal aborts. */
  async stream(message: HttpRequest): Promise<HttpStream> {
    const { statusCode, headers, body } = await this.request(message, this.watches);
    return { status: statusCode, retryAfter: single(headers['retry-after']), body };
  }

  /** Resolves with the user's token; undefined if the user has none. */
  async token(): Promise<string | undefined> {
    const { token, tokenFile } = this.access;
    return tokenFile === undefined ? token : this.freshToken(tokenFile);
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await Promise.all([this.calls.destroy(), this.watches.destroy()]);
  }

  private async request(message: HttpRequest, dispatcher: Dispatcher): Promise<Undici.Dispatcher.ResponseData> {
    const { method, path, body, signal } = message;
    const authorization = await this.authorization();
    const { origin, pathname, search } = new URL(this.access.server + path);
    return dispatcher.request({
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
  }

  private async authorization(): Promise<string | undefined> {
    const { basic } = this.access;
    const token = await this.token();
    if (token !== undefined) return `Bearer ${token}`;
    if (basic === undefined) return undefined;
    return `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString('base64')}`;
  }

  private async freshToken(file: string): Promise<string> {
    const now = this.clock.monotonic();
    if (this.fileToken !== undefined && now - this.tokenReadAt < TOKEN_AGE_MS) return this.fileToken;
    try {
      this.fileToken = (await readFile(file, 'utf8')).trim();
    } catch (error) {
      throw new AuthError(`${this.access.source}: the token file ${file} cannot be read: ${reasonOf(error)}`, {
        cause: error,
      });
    }
    this.tokenReadAt = now;
    return this.fileToken;
  }
}

function dispatcher(
  { Agent, EnvHttpProxyAgent }: Parts,
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

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
