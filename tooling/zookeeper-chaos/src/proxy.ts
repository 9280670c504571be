/** A TCP proxy in front of one server, which cuts, delays, truncates and silences connections. */

import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { systemClock } from '@nodepool/core';

/**
 * Mode of a proxy.
 * - `pass`: passes everything.
 * - `delay`: delays each piece; the order stays.
 * - `half-open`: passes the client's data and drops the server's.
 * - `silent`: accepts connections and drops the data of both directions.
 */
export type ProxyMode = 'pass' | 'delay' | 'half-open' | 'silent';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** True if the next piece from the server is to be truncated, after which the connection is cut. */
  truncate: boolean;
}

export class Proxy {
  private mode: ProxyMode = 'pass';
  private delayMs = 0;
  private readonly pairs = new Set<Pair>();

  private constructor(
    private readonly listener: Server,
    private readonly upstreamPort: number,
  ) {
    listener.on('connection', (client) => this.accept(client));
  }

  static async start(upstreamPort: number): Promise<Proxy> {
    const listener = createServer();
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(0, '127.0.0.1', resolve);
    });
    return new Proxy(listener, upstreamPort);
  }

  get port(): number {
    return (this.listener.address() as AddressInfo).port;
  }

  /** Sets the mode of existing and new connections. */
  set(mode: ProxyMode, delayMs = 0): void {
    const swallowed = this.mode === 'half-open' || this.mode === 'silent';
    this.mode = mode;
    this.delayMs = delayMs;
    // The connections have lost data, so the rest of their streams would be malformed.
    if (swallowed) this.cut();
  }

  /** Cuts all connections at once. */
  cut(): void {
    for (const pair of [...this.pairs]) this.end(pair);
  }

  /** Cuts each connection in the middle of the server's next piece. */
  halve(): void {
    for (const pair of this.pairs) pair.truncate = true;
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.listener.close(resolve));
  }

  private accept(client: Socket): void {
    const server = connect(this.upstreamPort, '127.0.0.1');
    const pair: Pair = { client, server, truncate: false };
    this.pairs.add(pair);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      // An error is followed by a close.
      socket.on('error', () => undefined);
      socket.on('close', () => this.end(pair));
    }
    client.on('data', (piece) => {
      if (this.mode !== 'silent') this.forward(piece, client, server);
    });
    server.on('data', (piece) => {
      if (pair.truncate) client.write(piece.subarray(0, piece.length >> 1), () => this.end(pair));
      else if (this.mode === 'pass' || this.mode === 'delay') this.forward(piece, server, client);
    });
  }

  private forward(piece: Buffer, from: Socket, to: Socket): void {
    to.write(piece);
    if (this.mode !== 'delay') return;
    // Later pieces wait, so that the order stays.
    from.pause();
    systemClock.schedule(this.delayMs, () => from.resume());
  }

  private end(pair: Pair): void {
    if (!this.pairs.delete(pair)) return;
    pair.client.destroy();
    pair.server.destroy();
  }
}
