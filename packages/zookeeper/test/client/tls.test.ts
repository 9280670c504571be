/** TLS faults: messages name the certificate and the remedy. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  expiredCertificate,
  makeCertificates,
  startZooKeeper,
  type Certificates,
  type RunningZooKeeper,
} from '@nodepool/dev-zookeeper';
import { connect, type ClientTlsOptions, type ZooKeeper } from '../../src/index.js';
import { errorOf, eventOf } from './helpers.js';

let folder: string;
let ours: Certificates;
let theirs: Certificates;
let zooKeeper: RunningZooKeeper;
let clients: ZooKeeper[] = [];
let servers: Server[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tls-'));
  [ours, theirs, zooKeeper] = await Promise.all([
    makeCertificates(join(folder, 'ours')),
    makeCertificates(join(folder, 'theirs')),
    startZooKeeper({ tls: true }),
  ]);
});

afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
  for (const server of servers) server.close();
  [clients, servers] = [[], []];
});

afterAll(async () => {
  await zooKeeper.stop();
  await rm(folder, { recursive: true });
});

/** Returns the client's warning, and the error of a caller that waits for a connection until its deadline. */
async function connectionErrors(address: string, tls: ClientTlsOptions): Promise<{ warning: Error; callError: Error }> {
  const zk = connect({ servers: address, tls });
  clients.push(zk);
  const [warning] = await eventOf(zk, 'warning');
  const callError = await errorOf(zk.connected({ timeoutMs: 5 }));
  expect(zk.counters.connects).toBe(0);
  return { warning, callError };
}

async function expectTlsError(address: string, tls: ClientTlsOptions, message: RegExp): Promise<void> {
  const { warning, callError } = await connectionErrors(address, tls);
  expect(warning.message).toMatch(message);
  expect(callError).toMatchObject({ code: 'timeout', message: expect.stringMatching(message) });
  expect((callError.cause as Error).message).toMatch(message);
}

/** A server that completes only the TLS handshake, and then does what `afterwards` does. */
async function tlsServer(
  options: TlsOptions,
  afterwards: (socket: TLSSocket) => void = () => undefined,
): Promise<string> {
  const server = createServer(options, (socket) => {
    socket.on('error', () => socket.destroy());
    afterwards(socket);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `localhost:${(server.address() as AddressInfo).port}`;
}

describe('the client rejects a server certificate that', () => {
  it('has expired', async () => {
    const address = await tlsServer({
      cert: await readFile(await expiredCertificate(ours, 'server')),
      key: await readFile(ours.serverKey),
    });
    await expectTlsError(address, { ca: ours.ca }, /the server's certificate has expired; it must be renewed/);
  });

  it('is signed by another authority', async () => {
    const address = await tlsServer({ cert: await readFile(theirs.serverCert), key: await readFile(theirs.serverKey) });
    await expectTlsError(address, { ca: ours.ca }, /not signed by an authority that is trusted; is tls\.ca the one/);
  });

  it('has another host name', async () => {
    const address = await tlsServer({ cert: await readFile(ours.serverCert), key: await readFile(ours.serverKey) });
    await expectTlsError(
      address,
      { ca: ours.ca, servername: 'zk.example.org' },
      /is not for zk\.example\.org: .*DNS:localhost.*; is it .* set verify-hostname in zookeeper-tls to false/,
    );
  });
});

it('a client that does not verify host names accepts any certificate of its authority, and no other', async () => {
  const { tlsServers = '', tls } = zooKeeper;
  const options = { ...tls!, servername: 'zk.example.org' };
  const client = connect({ servers: tlsServers, tls: { ...options, verifyHostname: false } });
  await client.connected({ timeoutMs: 20_000 });
  await client.close();
  const stranger = await tlsServer({ cert: await readFile(theirs.serverCert), key: await readFile(theirs.serverKey) });
  await expectTlsError(stranger, { ca: ours.ca, verifyHostname: false }, /not signed by an authority that is trusted/);
});

describe('the client’s error', () => {
  it('reports that the server requires a certificate', async () => {
    await expectTlsError(zooKeeper.tlsServers!, { ca: zooKeeper.tls!.ca }, /demands a certificate of the client/);
  });

  it('reports that the server does not trust the certificate', async () => {
    const { clientCert: cert, clientKey: key } = theirs;
    await expectTlsError(
      zooKeeper.tlsServers!,
      { ca: zooKeeper.tls!.ca, cert, key },
      /refuses the client's certificate; is tls\.cert signed by an authority that the server trusts/,
    );
  });

  it('reports that the certificate has expired', async () => {
    const { clientKey: key } = ours;
    const cert = await expiredCertificate(ours, 'client');
    await expectTlsError(
      zooKeeper.tlsServers!,
      { ca: zooKeeper.tls!.ca, cert, key },
      /refuses the client's certificate, which expired on 20\d\d-.*; renew tls\.cert/,
    );
  });

  it('names an expired certificate if the server closes the connection without a reason', async () => {
    const [cert, key] = await Promise.all([ours.serverCert, ours.serverKey].map((file) => readFile(file)));
    const address = await tlsServer({ cert, key }, (socket) => socket.end());
    const client = { ca: ours.ca, key: ours.clientKey };
    await expectTlsError(
      address,
      { ...client, cert: await expiredCertificate(ours, 'client') },
      /closed the connection; the client's certificate expired on 20\d\d-.*; renew tls\.cert/,
    );
    await expectTlsError(address, { ...client, cert: ours.clientCert }, /the server closed the connection$/);
  });

  it('reports that the port does not use TLS', async () => {
    await expectTlsError(zooKeeper.servers, zooKeeper.tls!, /does not answer with TLS; is this its secure port/);
  });
});

describe('the client’s warning', () => {
  it('names the key that does not belong to the certificate', async () => {
    const { ca, clientCert: cert } = ours;
    const { warning } = await connectionErrors('localhost:1', { ca, cert, key: theirs.clientKey });
    expect(warning).toMatchObject({ code: 'invalid-argument' });
    expect(warning.message).toContain('tls.key is not the key of tls.cert');
  });

  it('names an invalid certificate', async () => {
    const { warning } = await connectionErrors('localhost:1', {
      ...ours,
      cert: '-----BEGIN nonsense',
      key: ours.clientKey,
    });
    expect(warning).toMatchObject({ code: 'invalid-argument' });
    expect(warning.message).toMatch(/tls\.ca, tls\.cert or tls\.key cannot be used: .*give matching PEM files/);
  });
});
