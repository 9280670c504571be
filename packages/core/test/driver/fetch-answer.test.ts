/** The transport on `fetch`, within calls of a client. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import {
  ApiClient,
  connectionError,
  errorOfAnswer,
  ErrorStatus,
  fetchAnswer,
  NO_CREDENTIALS,
  notJson,
  silentLogger,
  type FetchedAnswer,
  type FetchRequest,
} from '../../src/index.js';

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serving(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const api = new ApiClient({
  clock: new VirtualClock(),
  onApiCall: () => undefined,
  credentials: NO_CREDENTIALS,
  errorOf: (error, attempted) =>
    error instanceof ErrorStatus
      ? errorOfAnswer({ vendor: 'Acme', retryAfterMs: 1000, rules: [] }, error.answer, attempted)
      : connectionError(attempted, { cause: error }),
});

function send(request: FetchRequest): Promise<FetchedAnswer> {
  const { method = 'GET' } = request;
  const call = { signal: new AbortController().signal, deadline: Infinity, log: silentLogger };
  return api.send({ service: 'compute', method, operation: 'servers', foreign: notJson }, call, (attempt) =>
    fetchAnswer(request, attempt),
  );
}

/** Resolves with the text of a request. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request) text += String(piece);
  return text;
}

describe('a request', () => {
  it('is sent with its method, headers and JSON, also to the address of a redirect', async () => {
    const url = await serving((request, response) => {
      if (request.url === '/former') response.writeHead(307, { location: '/servers' }).end();
      else {
        void bodyOf(request).then((text) => {
          const { method, headers } = request;
          response.end(JSON.stringify({ method, text, type: headers['content-type'], token: headers['x-token'] }));
        });
      }
    });
    const { json } = await send({
      ...{ url: `${url}/former`, method: 'POST', json: { name: 'a' }, headers: { 'x-token': 't' } },
    });
    expect(json).toEqual({ method: 'POST', text: '{"name":"a"}', type: 'application/json', token: 't' });
  });

  it('streams data', async () => {
    const url = await serving((request, response) => {
      void bodyOf(request).then((text) => response.end(JSON.stringify(text.length)));
    });
    const data = (): Readable => Readable.from([Buffer.alloc(100_000, 'x'), Buffer.alloc(100_000, 'y')]);
    expect(await send({ url, method: 'PUT', data })).toMatchObject({ status: 200, json: 200_000 });
  });

  it('may have an empty answer', async () => {
    const url = await serving((_request, response) => response.writeHead(204).end());
    expect(await send({ url, method: 'DELETE' })).toMatchObject({ status: 204, text: '', json: undefined });
  });
});

describe('an answer fails the call', () => {
  it.each([
    ['with an error', 'GET', 503, '{}', 'transient', 'not-applied', '503'],
    ['that is the page of a proxy', 'POST', 200, '<h1>Sign in</h1>', 'transient', 'unknown', 'not JSON: <h1>Sign in'],
    ['that says the same with another status', 'DELETE', 404, '<h1>No</h1>', 'transient', 'unknown', 'of Acme?'],
  ])('%s', async (_what, method, status, text, code, outcome, message) => {
    const url = await serving((_request, response) =>
      response.writeHead(status, { 'content-type': 'text/html' }).end(text),
    );
    await expect(send({ url, method })).rejects.toMatchObject({
      code,
      outcome,
      message: expect.stringMatching(new RegExp(`^compute: ${method} servers: .*`)),
    });
    await expect(send({ url, method })).rejects.toThrow(message);
    await expect(send({ url, method })).rejects.toThrow(`(answer of ${new URL(url).host}: ${status}, text/html)`);
  });

  it('that is too long', async () => {
    const url = await serving((_request, response) => response.end(JSON.stringify('x'.repeat(10_000))));
    await expect(send({ url, maxBytes: 1000 })).rejects.toThrow('the answer is longer than 1000 bytes');
  });

  it('that redirects to another host', async () => {
    const url = await serving((_request, response) =>
      response.writeHead(302, { location: 'http://localhost:1/' }).end(),
    );
    await expect(send({ url })).rejects.toThrow('it redirects to localhost:1');
  });

  it('that does not come', async () => {
    const url = await serving(() => undefined);
    servers[0]?.close();
    const { port } = new URL(url);
    servers.splice(0);
    await expect(send({ url: `http://127.0.0.1:${port}`, method: 'POST' })).rejects.toMatchObject({
      code: 'transient',
      outcome: 'not-applied',
      message: expect.stringContaining('cannot connect (ECONNREFUSED)'),
    });
  });
});
