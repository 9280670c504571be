/** Conversion of the errors of `fetch` and of connections, tested with real errors of local ports. */

import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { toDriverError, type DriverError } from '../../src/index.js';

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
    if (server.listening) await once(server, 'close');
  }
});

/** Resolves with the URL of the server once it listens. */
async function listen(server: Server): Promise<string> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function tcp(onConnection: (socket: Socket) => void): Promise<string> {
  return listen(createServer(onConnection));
}

function http(onRequest: RequestListener): Promise<string> {
  return listen(createHttpServer(onRequest));
}

/** Resolves with the error with which the work rejects. */
async function failureOf(work: Promise<unknown>): Promise<DriverError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return toDriverError(error);
}

async function closedPort(): Promise<number> {
  const url = await tcp(() => undefined);
  const [server] = servers.splice(0);
  server!.close();
  await once(server!, 'close');
  return Number(new URL(url).port);
}

describe('an error of fetch', () => {
  it('at a closed port reports the address and that nothing was sent', async () => {
    const port = await closedPort();
    const error = await failureOf(fetch(`http://127.0.0.1:${port}/`));
    expect(error).toMatchObject({
      name: 'TransientError',
      code: 'transient',
      outcome: 'not-applied',
      message: `fetch failed: connect ECONNREFUSED 127.0.0.1:${port}`,
    });
  });

  it('at a host with several addresses names all of them', async () => {
    const port = await closedPort();
    const error = await failureOf(fetch(`http://localhost:${port}/`));
    expect(error).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(error.message).toMatch(new RegExp(`^fetch failed: .*ECONNREFUSED .*:${port}`));
  });

  it('at an unknown host name reports that nothing was sent', async () => {
    const error = await failureOf(fetch('http://nodepool.invalid/'));
    expect(error).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(error.message).toMatch(/^fetch failed: getaddrinfo (ENOTFOUND|EAI_AGAIN) nodepool.invalid$/);
  });

  it('after the connection was closed before the answer has an unknown outcome', async () => {
    const url = await tcp((socket) => socket.once('data', () => socket.destroy()));
    expect(await failureOf(fetch(url, { method: 'POST', body: 'x' }))).toMatchObject({
      code: 'transient',
      outcome: 'unknown',
      message: 'fetch failed: other side closed (UND_ERR_SOCKET)',
    });
  });

  it('after the connection was reset has an unknown outcome', async () => {
    const url = await tcp((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(await failureOf(fetch(url, { method: 'POST', body: 'x' }))).toMatchObject({
      code: 'transient',
      outcome: 'unknown',
      message: 'fetch failed: read ECONNRESET',
    });
  });

  it('after a truncated answer has an unknown outcome', async () => {
    const url = await http((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('part', () => response.destroy());
    });
    const text = fetch(url).then((response) => response.text());
    expect(await failureOf(text)).toMatchObject({
      code: 'transient',
      outcome: 'unknown',
      message: 'terminated: other side closed (UND_ERR_SOCKET)',
    });
  });

  it('after an answer that is not HTTP has an unknown outcome', async () => {
    const url = await tcp((socket) => socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.2\r\n\r\n')));
    const error = await failureOf(fetch(url));
    expect(error).toMatchObject({ code: 'transient', outcome: 'unknown' });
    expect(error.message).toMatch(/^fetch failed: .*(HPE_|HTTPParserError)/);
  });

  it('after AbortSignal.timeout is a timeout with unknown outcome', async () => {
    const sockets: Socket[] = [];
    const url = await tcp((socket) => sockets.push(socket.resume()));
    const error = await failureOf(fetch(url, { signal: AbortSignal.timeout(20) }));
    expect(error).toMatchObject({
      name: 'TimeoutError',
      code: 'timeout',
      outcome: 'unknown',
      message: 'The operation was aborted due to timeout',
    });
    for (const socket of sockets) socket.destroy();
  });

  it('caused by an invalid call is not a network error', async () => {
    expect(await failureOf(fetch('no URL'))).toMatchObject({ code: 'unexpected' });
  });
});

describe('an error of a connection', () => {
  it('at a closed port reports that nothing was sent', async () => {
    const socket = connect(await closedPort(), '127.0.0.1');
    expect(await failureOf(once(socket, 'connect'))).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });

  it.each([
    ['ETIMEDOUT', 'connect', 'transient', 'not-applied'],
    ['ETIMEDOUT', 'read', 'timeout', 'unknown'],
    ['EHOSTUNREACH', 'connect', 'transient', 'not-applied'],
    ['EHOSTUNREACH', 'read', 'transient', 'unknown'],
    ['EPIPE', 'write', 'transient', 'unknown'],
    ['UND_ERR_CONNECT_TIMEOUT', undefined, 'transient', 'not-applied'],
    ['UND_ERR_HEADERS_TIMEOUT', undefined, 'timeout', 'unknown'],
    ['UND_ERR_BODY_TIMEOUT', undefined, 'timeout', 'unknown'],
    ['CERT_HAS_EXPIRED', undefined, 'certificate', 'not-applied'],
    ['ENOENT', 'open', 'unexpected', 'unknown'],
  ])('%s of %s is %s, %s', (code, syscall, expected, outcome) => {
    const error = toDriverError(Object.assign(new Error('it failed'), { code, syscall }));
    expect(error).toMatchObject({ code: expected, outcome });
  });
});

describe('a thrown value that is not an error', () => {
  it.each([
    ['404 gone', 'the driver threw a string instead of an error: 404 gone'],
    [undefined, 'the driver threw undefined instead of an error'],
    [{ status: 404 }, 'the driver threw an object instead of an error: { status: 404 }'],
  ])('is described: %p', (thrown, message) => {
    expect(toDriverError(thrown)).toMatchObject({ code: 'unexpected', message });
  });
});
