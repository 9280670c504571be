/** The proxy injects faults into connections. */

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Proxy } from '../src/proxy.js';

describe('a proxy', () => {
  let echo: Server;
  let proxy: Proxy;
  let client: Socket;

  beforeEach(async () => {
    echo = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    proxy = await Proxy.start((echo.address() as AddressInfo).port);
    client = connect(proxy.port, '127.0.0.1');
    client.on('error', () => undefined);
    await once(client, 'connect');
  });

  afterEach(async () => {
    client.destroy();
    await proxy.stop();
    await new Promise((resolve) => echo.close(resolve));
  });

  async function answer(length: number): Promise<string> {
    let text = '';
    while (text.length < length) {
      const [piece] = (await once(client, 'data')) as [Buffer];
      text += piece.toString();
    }
    return text;
  }

  /** Resolves with the way in which the connection ends: in order or by a reset. */
  function untilClosed(): Promise<unknown> {
    return new Promise((resolve) => client.once('close', resolve));
  }

  it('passes all data', async () => {
    client.write('hello');
    expect(await answer(5)).toBe('hello');
  });

  it('cuts connections', async () => {
    client.write('hello');
    await answer(5);
    const closed = untilClosed();
    proxy.cut();
    await closed;
    expect(client.destroyed).toBe(true);
  });

  it('cuts a connection in the middle of an answer', async () => {
    client.write('hello');
    await answer(5);
    let received = '';
    client.on('data', (piece: Buffer) => (received += piece.toString()));
    const closed = untilClosed();
    proxy.halve();
    client.write('12345678');
    await closed;
    expect(received).toBe('1234');
  });

  it('delays pieces in order', async () => {
    proxy.set('delay', 5);
    const all = answer(13);
    client.write('one,');
    client.write('two,');
    client.write('three');
    expect(await all).toBe('one,two,three');
  });

  it.each(['silent', 'half-open'] as const)(
    'passes no answer while it is %s, and cuts the connections afterwards',
    async (mode) => {
      let received = '';
      client.on('data', (piece: Buffer) => (received += piece.toString()));
      proxy.set(mode);
      const closed = untilClosed();
      client.write('hello');
      await new Promise((resolve) => client.write('again', resolve));
      proxy.set('pass');
      await closed;
      expect(received).toBe('');
    },
  );
});
