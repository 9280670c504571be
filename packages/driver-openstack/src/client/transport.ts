/** HTTP with persistent connections and the TLS settings of a cloud, independent of OpenStack. */

import { answerText, ConfigurationError, fileFaultOf, isUntrusted, type Attempt, type Logger } from '@nodepool/core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import type * as Undici from 'undici';
import type { TlsOptions } from './cloud.js';

/** Loads undici when a provider starts. Parsing a configuration does not require it. */
function loadUndici(): typeof Undici {
  return createRequire(__filename)('undici') as typeof Undici;
}

/** Maximum number of connections to one service. Calls wait for a connection before their time limit starts. */
const CONNECTIONS = 64;
const CONNECT_TIMEOUT_MS = 20_000;

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Data are opened for each request. */
  readonly body: string | (() => Readable) | undefined;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
}

/** An answer with a status of 300 or more. */
export class HttpStatusError extends Error {
  constructor(readonly answer: HttpAnswer) {
    super(`status ${answer.status}`);
  }
}

/** Sends requests. `send` resolves with the whole answer for any status. */
export interface HttpTransport {
  send(request: HttpRequest): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** Sends the message of a call, and follows redirects. Rejects with `HttpStatusError` for an answer with an error. */
export async function sendMessage(
  transport: HttpTransport,
  message: Omit<HttpRequest, 'signal'>,
  { http, signal }: Pick<Attempt, 'http' | 'signal'>,
): Promise<HttpAnswer> {
  const answer = await http.send(message.url, message, (url) => transport.send({ ...message, url, signal }));
  if (answer.status < 300) return answer;
  throw new HttpStatusError(answer);
}

/** The network with the environment's proxy settings (`HTTPS_PROXY`, `NO_PROXY`) and the cloud's TLS settings. */
export class UndiciTransport implements HttpTransport {
  readonly settings: TlsSettings;
  private readonly dispatcher: Undici.Dispatcher;

  /** `place` names the cloud in messages. Throws `ConfigurationError` if a certificate file cannot be read. */
  constructor(tls: TlsOptions, env: Readonly<Record<string, string | undefined>>, place: string) {
    this.settings = tlsSettings(tls, place);
    const connect = { ...this.settings, timeout: CONNECT_TIMEOUT_MS };
    // Callers set their own deadlines on their own clock.
    const options = { connect, connections: CONNECTIONS, headersTimeout: 0, bodyTimeout: 0 };
    const { Agent, EnvHttpProxyAgent } = loadUndici();
    const httpProxy = env['http_proxy'] ?? env['HTTP_PROXY'];
    const httpsProxy = env['https_proxy'] ?? env['HTTPS_PROXY'];
    const noProxy = env['no_proxy'] ?? env['NO_PROXY'];
    this.dispatcher =
      httpProxy === undefined && httpsProxy === undefined
        ? new Agent(options)
        : new EnvHttpProxyAgent({
            ...options,
            requestTls: connect,
            ...(httpProxy === undefined ? {} : { httpProxy }),
            ...(httpsProxy === undefined ? {} : { httpsProxy }),
            ...(noProxy === undefined ? {} : { noProxy }),
          });
  }

  async send({ method, url, headers, body, signal }: HttpRequest): Promise<HttpAnswer> {
    const { origin, pathname, search } = new URL(url);
    const content = typeof body === 'function' ? body() : body;
    try {
      const response = await this.dispatcher.request({
        origin,
        path: pathname + search,
        method,
        headers,
        signal,
        ...(content === undefined ? {} : { body: content }),
      });
      return { status: response.statusCode, headers: flat(response.headers), text: await answerText(response.body) };
    } finally {
      if (typeof content === 'object') content.destroy();
    }
  }

  async close(): Promise<void> {
    await this.dispatcher.destroy();
  }
}

/**
 * Sends requests, and reads the certificate files again if a connection fails because of a certificate: operators
 * replace authorities and client certificates while the launcher runs.
 */
export class ReloadingTransport implements HttpTransport {
  private current: UndiciTransport;

  /** `read` creates a transport from the present files. Throws `ConfigurationError` if `read` does. */
  constructor(
    private readonly read: () => UndiciTransport,
    private readonly log: () => Logger,
  ) {
    this.current = read();
  }

  async send(request: HttpRequest): Promise<HttpAnswer> {
    const { current } = this;
    try {
      return await current.send(request);
    } catch (error) {
      // No request precedes the check of the certificates.
      if (!isUntrusted(error) || (this.current === current && !(await this.hasChanged()))) throw error;
      return await this.current.send(request);
    }
  }

  close(): Promise<void> {
    return this.current.close();
  }

  /** Uses the present certificate files. Resolves with false if they are the same or cannot be used. */
  private async hasChanged(): Promise<boolean> {
    let next: UndiciTransport;
    try {
      next = this.read();
    } catch (error) {
      // The file may be incomplete because an operator is changing it.
      if (!(error instanceof ConfigurationError)) throw error;
      this.log().warn('The certificate files of a cloud cannot be used; the former ones are used', { error });
      return false;
    }
    if (isDeepStrictEqual(next.settings, this.current.settings)) {
      await next.close();
      return false;
    }
    // The former connections serve the calls in progress and close when they are idle.
    this.current = next;
    this.log().info('Using the changed certificate files of a cloud');
    return true;
  }
}

interface TlsSettings {
  readonly rejectUnauthorized: boolean;
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

function tlsSettings({ verify, cacert, cert, key }: TlsOptions, place: string): TlsSettings {
  return {
    rejectUnauthorized: verify,
    ...(cacert === undefined ? {} : { ca: pem('cacert', cacert, place) }),
    ...(cert === undefined ? {} : { cert: pem('cert', cert, place) }),
    // One file may contain both.
    ...(key === undefined && cert === undefined
      ? {}
      : { key: pem(key === undefined ? 'cert' : 'key', key ?? cert ?? '', place) }),
  };
}

function pem(name: string, path: string, place: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ConfigurationError(`${place}: ${name} ${path} cannot be read: ${fileFaultOf(error)}`, {
      cause: error,
    });
  }
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}
