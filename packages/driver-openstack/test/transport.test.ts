/** HTTP: persistent connections, the TLS settings of clouds.yaml, and streamed bodies. */

import { afterEach, beforeAll, afterAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@nodepool/core';
import { makeCertificates, type Certificates } from '@nodepool/dev-zookeeper';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp, type Server } from 'node:http';
import { createServer as createHttps, type ServerOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { TlsOptions } from '../src/client/cloud.js';
import { ReloadingTransport, UndiciTransport, type HttpAnswer } from '../src/client/transport.js';
import { connectionErrorOf } from '../src/errors.js';

const plain: TlsOptions = { verify: true, cacert: undefined, cert: undefined, key: undefined };
let folder: string;
let certificates: Certificates;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tls-'));
  certificates = await makeCertificates(folder);
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Starts a server that answers with the number of bytes received, and returns its URL. */
async function serve(server: Server, scheme: string): Promise<string> {
  server.on('request', (request, response) => {
    let bytes = 0;
    request.on('data', (piece: Buffer) => (bytes += piece.byteLength));
    request.on('end', () => response.setHeader('X-Test', 'yes').end(String(bytes)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it does not listen');
  return `${scheme}://127.0.0.1:${address.port}/`;
}

const https = (options: ServerOptions = {}): Promise<string> =>
  serve(
    createHttps({ cert: readFileSync(certificates.serverCert), key: readFileSync(certificates.serverKey), ...options }),
    'https',
  );

async function send(tls: Partial<TlsOptions>, url: string, body?: Readable): Promise<HttpAnswer> {
  const transport = new UndiciTransport({ ...plain, ...tls }, {}, 'clouds.yaml: cloud acme');
  closing.push(() => transport.close());
  const { signal } = new AbortController();
  const headers = { 'content-type': 'application/octet-stream' };
  return transport.send({
    ...{ method: body === undefined ? 'GET' : 'PUT', url, headers, signal },
    body: body === undefined ? undefined : () => body,
  });
}

/** Returns the error of a failed call. */
async function failureOf(
  promise: Promise<unknown>,
  url: string,
): Promise<{ readonly code: string; readonly message: string }> {
  const { origin } = new URL(url);
  const attempted = { operation: 'compute: GET limits', changesSomething: false, now: 0, origin };
  return promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => connectionErrorOf(attempted, error),
  );
}

describe('HTTP', () => {
  it('reuses connections', async () => {
    const server = createHttp();
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const url = await serve(server, 'http');
    const transport = new UndiciTransport(plain, {}, '');
    closing.unshift(() => transport.close());
    const { signal } = new AbortController();
    for (let count = 0; count < 5; count += 1) {
      const answer = await transport.send({ method: 'GET', url, headers: {}, body: undefined, signal });
      expect(answer).toMatchObject({ status: 200, text: '0', headers: { 'x-test': 'yes' } });
    }
    // A new call may start while the previous connection is still finishing its call.
    expect(connections).toBeLessThan(3);
  });

  it('streams request bodies', async () => {
    const url = await serve(createHttp(), 'http');
    const pieces = Array.from({ length: 200 }, () => Buffer.alloc(10_000));
    expect(await send({}, url, Readable.from(pieces))).toMatchObject({ text: '2000000' });
  });
});

describe('TLS', () => {
  it('trusts the authority in cacert', async () => {
    expect(await send({ cacert: certificates.ca }, await https())).toMatchObject({ status: 200 });
  });

  it('reads a replaced authority again when a certificate is not trusted', async () => {
    const cacert = join(folder, 'replaced.pem');
    copyFileSync((await makeCertificates(join(folder, 'former'))).ca, cacert);
    const url = await https();
    const read = (): UndiciTransport => new UndiciTransport({ ...plain, cacert }, {}, 'clouds.yaml: cloud acme');
    const transport = new ReloadingTransport(read, () => silentLogger);
    closing.push(() => transport.close());
    const request = { method: 'PUT', url, headers: {}, signal: new AbortController().signal } as const;
    const body = (): Readable => Readable.from([Buffer.alloc(1000)]);
    await expect(transport.send({ ...request, body })).rejects.toThrow();
    writeFileSync(cacert, '-----BEGIN CERTIFICATE-----\n');
    await expect(transport.send({ ...request, body })).rejects.toThrow();
    copyFileSync(certificates.ca, cacert);
    expect(await transport.send({ ...request, body })).toMatchObject({ status: 200, text: '1000' });
  });

  it('refuses an unknown authority, and names the keys that allow it', async () => {
    const url = await https();
    expect(await failureOf(send({}, url), url)).toMatchObject({
      code: 'certificate',
      message: expect.stringMatching(/not trusted.*"cacert" and "verify"/),
    });
  });

  it('trusts every certificate if verify is false', async () => {
    expect(await send({ verify: false }, await https())).toMatchObject({ status: 200 });
  });

  it('presents the client certificate in cert and key', async () => {
    const url = await https({ requestCert: true, rejectUnauthorized: true, ca: readFileSync(certificates.ca) });
    const { ca, clientCert, clientKey } = certificates;
    expect(await send({ cacert: ca, cert: clientCert, key: clientKey }, url)).toMatchObject({ status: 200 });
    await expect(send({ cacert: ca }, url)).rejects.toThrow();
  });

  it('reports the key and the path of an unreadable file', async () => {
    await expect(send({ cacert: '/nowhere/ca.pem' }, 'https://127.0.0.1:1/')).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(/cloud acme: cacert \/nowhere\/ca\.pem cannot be read/),
    });
  });
});
