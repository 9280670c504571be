/** HTTP with persistent connections and the TLS settings of a cloud, independent of OpenStack. */

import { ConfigurationError } from '@nodepool/core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import type * as Undici from 'undici';
import type { TlsOptions } from './cloud.js';

/** The parts of undici that the published package contains as a bundle. */
type Parts = Pick<typeof Undici, 'Agent' | 'EnvHttpProxyAgent'>;

/** Loads undici when a provider starts. Parsing a configuration does not require it. */
function loadUndici(): Parts {
  return createRequire(__filename)('#undici') as Parts;
}

/** Maximum size of an answer in bytes; longer ones are refused. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

/**
 * Maximum number of connections to one service. Calls that wait for a connection are queued before their time limit
 * starts.
 */
const CONNECTIONS = 64;
const CONNECT_TIMEOUT_MS = 20_000;

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable | undefined;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
}

/** Sends requests. `send` resolves with the whole answer for any status. */
export interface Transport {
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Closes the connections. */
  close(): Promise<void>;
}

/**
 * The network with the proxy settings of the environment (`HTTPS_PROXY`, `NO_PROXY`) and the TLS settings of the cloud.
 */
export class UndiciTransport implements Transport {
  private readonly dispatcher: Undici.Dispatcher;

  /** `place` names the cloud in messages. Throws `ConfigurationError` if a certificate file cannot be read. */
  constructor(tls: TlsOptions, env: Readonly<Record<string, string | undefined>>, place: string) {
    const connect = { ...tlsSettings(tls, place), timeout: CONNECT_TIMEOUT_MS };
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
    const response = await this.dispatcher.request({
      origin,
      path: pathname + search,
      method,
      headers,
      signal,
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.statusCode, headers: flat(response.headers), text: await textOf(response.body) };
  }

  async close(): Promise<void> {
    await this.dispatcher.destroy();
  }
}

function tlsSettings({ verify, cacert, cert, key }: TlsOptions, place: string): Record<string, unknown> {
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
    throw new ConfigurationError(
      `${place}: ${name} ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}

async function textOf(body: AsyncIterable<unknown>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const piece of body) {
    if (!(piece instanceof Uint8Array)) continue;
    bytes += piece.byteLength;
    if (bytes > MAX_ANSWER_BYTES) throw new RangeError(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`);
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}
