/** Tests of waiting for nodes and gathering their host keys, with real and with hostile servers. */

import { networkInterfaces } from 'node:os';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Server as SshServer, utils } from 'ssh2';
import { NodeScanner } from '../../src/launch/scan/node-scanner.js';
import { scanNode, type NodeLogin } from '../../src/launch/scan/scan-node.js';
import { silentLogger, Slots, systemClock, type Clock } from '@nodepool/core';
import { RealSshd, TestServer, freePort } from './servers.js';

function login(port: number, changes: Partial<NodeLogin> = {}): NodeLogin {
  return {
    host: '127.0.0.1',
    port,
    connectionType: 'ssh',
    signal: new AbortController().signal,
    timeoutMs: 20_000,
    log: silentLogger,
    ...changes,
  };
}

const scan = (port: number, changes?: Partial<NodeLogin>): Promise<readonly string[]> =>
  scanNode(login(port, changes), systemClock, new Slots(Infinity));

const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function serve(onConnection: (socket: Socket) => void): Promise<{ server: TestServer; port: number }> {
  const server = new TestServer(onConnection);
  cleanUps.push(() => server.stop());
  return { server, port: await server.listen() };
}

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
);
const addresses = ['127.0.0.1', ...(hasIpv6 ? ['::1'] : [])];

describe("the scan of OpenSSH's server", () => {
  it.each(addresses)('waits until it listens on %s and returns one key of each type', async (host) => {
    const sshd = await RealSshd.start(host);
    cleanUps.push(() => sshd.stop());
    const keys = await scan(sshd.port, { host });
    expect([...keys].sort()).toEqual(sshd.keys);
    expect(keys.map((key) => key.split(' ')[0])).toEqual([
      'ssh-ed25519',
      'ecdsa-sha2-nistp256',
      'ecdsa-sha2-nistp384',
      'ecdsa-sha2-nistp521',
      'ssh-rsa',
    ]);
    expect(await scan(sshd.port, { host, connectionType: 'network_cli' })).toEqual(keys);
  });
});

describe('the scan of another SSH server', () => {
  it('returns its keys, without a login', async () => {
    const pairs = [utils.generateKeyPairSync('ed25519'), utils.generateKeyPairSync('rsa', { bits: 2048 })];
    let logins = 0;
    const server = new SshServer({ hostKeys: pairs.map((pair) => pair.private) }, (client) => {
      client.on('authentication', () => (logins += 1));
      client.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    cleanUps.push(() => new Promise((resolve) => server.close(() => resolve())));
    const keys = await scan((server.address() as { port: number }).port);
    expect(keys).toEqual(pairs.map((pair) => pair.public.split(' ').slice(0, 2).join(' ')));
    expect(logins).toBe(0);
  });
});

describe('the wait for a port', () => {
  it('ends as soon as it accepts a connection, without keys, for logins other than ssh', async () => {
    const { server, port } = await serve(() => undefined);
    expect(await scan(port, { connectionType: 'winrm' })).toEqual([]);
    await server.allClosed();
  });

  it('continues while it refuses connections', async () => {
    const port = await freePort('127.0.0.1');
    const server = new TestServer(() => undefined);
    cleanUps.push(() => server.stop());
    let waits = 0;
    const clock: Clock = {
      ...systemClock,
      schedule: (delayMs, callback, options) => {
        // The third timer of a scan is its wait after the first refused connection.
        waits += 1;
        if (waits === 3) void server.listen('127.0.0.1', port);
        return systemClock.schedule(delayMs, callback, options);
      },
    };
    expect(await scanNode(login(port, { connectionType: 'winrm' }), clock, new Slots(Infinity))).toEqual([]);
    expect(waits).toBeGreaterThan(3);
  });

  it('ends with a typed error and the reason at the deadline', async () => {
    const port = await freePort('127.0.0.1');
    await expect(scan(port, { timeoutMs: 250 })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringMatching(new RegExp(`^port ${port} of 127.0.0.1 accepted no connection.*ECONNREFUSED`)),
    });
  });

  it('ends when the signal aborts, also before it starts', async () => {
    const port = await freePort('127.0.0.1');
    const controller = new AbortController();
    const scanning = scan(port, { signal: controller.signal });
    controller.abort(new Error('the request was withdrawn'));
    await expect(scanning).rejects.toMatchObject({ code: 'aborted' });
    await expect(scan(port, { signal: controller.signal })).rejects.toMatchObject({ code: 'aborted' });
  });

  it.each([0, 65_536, 1.5, NaN])('rejects port %p', async (port) => {
    await expect(scan(port)).rejects.toMatchObject({ code: 'configuration' });
  });
});

describe('a hostile server', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['sends nothing', () => undefined],
    ['closes at once', (socket) => socket.end()],
    ['resets the connection', (socket) => socket.once('data', () => socket.resetAndDestroy())],
    ['speaks http', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['speaks version 1', (socket) => socket.write('SSH-1.5-old\r\n')],
    ['sends unlimited data', (socket) => pour(socket, Buffer.alloc(65_536, 0x41))],
    ['sends unlimited lines', (socket) => pour(socket, Buffer.from('hello\r\n'.repeat(5000)))],
    ['sends a huge packet', (socket) => socket.write('SSH-2.0-x\r\n\xff\xff\xff\xff\x04\x14', 'latin1')],
    ['sends garbage after its name', (socket) => socket.write(Buffer.from(`SSH-2.0-x\r\n${'\u0001'.repeat(500)}`))],
    ['stops in the middle', (socket) => socket.write('SSH-2.0-x\r\n\0\0\x01\x00\x04\x14', 'latin1')],
    ['stops after its algorithms', (socket) => socket.write(hello('ssh-ed25519,rsa-sha2-512'))],
  ])('that %s is abandoned at the deadline, and no connection remains', async (_what, behave) => {
    const { server, port } = await serve((socket) => {
      socket.resume();
      behave(socket);
    });
    await expect(scan(port, { timeoutMs: 399.14 })).rejects.toMatchObject({
      code: 'keyscan',
      message: expect.stringContaining(`port ${port} of 127.0.0.1 gave no ssh host keys within 400 ms`),
    });
    expect(server.accepted).toBeGreaterThan(0);
    await server.allClosed();
  });

  it('that has no key of a known type fails at once', async () => {
    const { port } = await serve((socket) => socket.write(hello('x509v3-sign-rsa')));
    await expect(scan(port)).rejects.toMatchObject({
      code: 'keyscan',
      message: expect.stringContaining('x509v3-sign-rsa'),
    });
  });
});

describe('a node scanner', () => {
  it('limits the connections, serves all scans, and shows how many wait', async () => {
    const unanswered: Socket[] = [];
    let maximum = 0;
    const { server, port } = await serve((socket) => {
      maximum = Math.max(maximum, unanswered.push(socket));
      // The server answers only when all permits of the scanner must be in use.
      if (unanswered.length < 3 && server.accepted < 20) return;
      for (const waiting of unanswered.splice(0)) waiting.write(hello('x509v3-sign-rsa'));
    });
    const scanner = new NodeScanner({ clock: systemClock, concurrency: 3 });
    const scans = Array.from({ length: 20 }, () => scanner.scan(login(port)));
    expect(scanner.queueLength).toBe(17);
    expect(scanner.running).toBe(20);
    for (const result of await Promise.allSettled(scans)) expect(result).toMatchObject({ reason: { code: 'keyscan' } });
    expect(server.accepted).toBe(20);
    expect(maximum).toBe(3);
    expect(scanner.queueLength).toBe(0);
    expect(scanner.running).toBe(0);
  });

  it('is not delayed by nodes that do not answer yet', async () => {
    const dead = await freePort('127.0.0.1');
    const { port } = await serve(() => undefined);
    const scanner = new NodeScanner({ clock: systemClock, concurrency: 1 });
    const controller = new AbortController();
    const hopeless = Array.from({ length: 9 }, () => scanner.scan(login(dead, { signal: controller.signal })));
    expect(await scanner.scan(login(port, { connectionType: 'winrm' }))).toEqual([]);
    controller.abort();
    for (const result of await Promise.allSettled(hopeless))
      expect(result).toMatchObject({ reason: { code: 'aborted' } });
  });

  it('releases the permit of a waiting scan that is aborted', async () => {
    const { port } = await serve(() => undefined);
    const scanner = new NodeScanner({ clock: systemClock, concurrency: 1 });
    const [first, second] = [new AbortController(), new AbortController()];
    const scans = [first, second].map(({ signal }) => scanner.scan(login(port, { signal })));
    second.abort();
    await expect(scans[1]).rejects.toMatchObject({ code: 'aborted' });
    expect(scanner.queueLength).toBe(0);
    first.abort();
    await expect(scans[0]).rejects.toMatchObject({ code: 'aborted' });
    expect(await scanner.scan(login(port, { connectionType: 'winrm' }))).toEqual([]);
  });
});

/** Returns the first packets of an SSH server with these host key algorithms. */
function hello(algorithms: string): Buffer {
  const list = (text: string): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    return Buffer.concat([length, Buffer.from(text)]);
  };
  const payload = Buffer.concat([Buffer.from([20]), Buffer.alloc(16), list('curve25519-sha256'), list(algorithms)]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payload.length + 5);
  head.writeUInt8(4, 4);
  return Buffer.concat([Buffer.from('SSH-2.0-test\r\n'), head, payload, Buffer.alloc(4)]);
}

function pour(socket: Socket, data: Buffer): void {
  while (!socket.destroyed && socket.write(data));
  socket.once('drain', () => pour(socket, data));
}
