/** The server's end of a client's connections, in memory. The test decides which bytes arrive, and when. */

import { connectThrough } from '../../src/client/client.js';
import type { ConnectionHandler, OpenWire, Wire } from '../../src/client/connection.js';
import { FrameDecoder } from '../../src/client/frame-decoder.js';
import { JuteWriter } from '../../src/client/jute-writer.js';
import {
  ConnectionLostError,
  ZooKeeperError,
  type ClientOptions,
  type Clock,
  type ZooKeeper,
} from '../../src/index.js';

const PASSWORD = Buffer.alloc(16, 1);

/** A clock that stands still. */
export const frozenClock: Clock = {
  now: () => 0,
  monotonic: () => 0,
  schedule: () => ({ cancel: () => undefined }),
};

/** The server's end of a client's connection. */
export class Peer implements Wire {
  bytesSent = 0;
  bytesReceived = 0;
  /** Request numbers of the client's requests, in order. */
  readonly xids: number[] = [];
  private readonly fed: Buffer[] = [];
  private greeted = false;
  private over = false;
  private readonly requests = new FrameDecoder(2 ** 30, {
    onFrame: (bytes, start) => {
      if (this.greeted) this.xids.push(bytes.readInt32BE(start));
      this.greeted = true;
    },
  });
  private readonly answers: FrameDecoder;

  constructor(
    private readonly handler: ConnectionHandler,
    maxFrameBytes: number,
  ) {
    this.answers = new FrameDecoder(maxFrameBytes, handler);
  }

  /** True once either side has closed the connection. */
  get ended(): boolean {
    return this.over;
  }

  /** All bytes sent to the client, in hexadecimal. */
  get sent(): string {
    return Buffer.concat(this.fed).toString('hex');
  }

  open(): void {
    this.handler.onOpen();
  }

  /** Opens the connection and confirms a session. */
  establish(timeoutMs = 10_000): void {
    this.open();
    this.feed(hello(timeoutMs));
  }

  send(bytes: Buffer): void {
    this.bytesSent += bytes.length;
    this.requests.push(bytes);
  }

  destroy(): void {
    this.over = true;
    this.answers.stop();
  }

  /** Delivers bytes as a socket does: an error ends the connection. Rethrows errors that the client does not expect. */
  feed(bytes: Buffer): void {
    if (this.over) return;
    this.fed.push(bytes);
    this.handler.onBytes();
    try {
      this.answers.push(bytes);
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      this.end(error);
    }
  }

  end(error: ZooKeeperError = new ConnectionLostError('connection-lost', 'the end of the round')): void {
    if (this.over) return;
    this.destroy();
    this.handler.onEnd(error);
  }
}

/** Returns a client that connects to peers; `nextPeer` resolves with its connections in order. */
export function clientInMemory(options: Partial<ClientOptions> = {}): {
  readonly zk: ZooKeeper;
  nextPeer(): Promise<Peer>;
} {
  const peers: Peer[] = [];
  const takers: ((peer: Peer) => void)[] = [];
  const openWire: OpenWire = (_endpoint, _tls, maxFrameBytes, handler) => {
    const peer = new Peer(handler, maxFrameBytes);
    const taker = takers.shift();
    if (taker === undefined) peers.push(peer);
    else taker(peer);
    return peer;
  };
  const zk = connectThrough(openWire, { servers: '127.0.0.1', clock: frozenClock, ...options });
  const nextPeer = (): Promise<Peer> => {
    const peer = peers.shift();
    return peer === undefined ? new Promise((resolve) => takers.push(resolve)) : Promise.resolve(peer);
  };
  return { zk, nextPeer };
}

/** Returns the message that confirms a session, prefixed with its length. */
export function hello(timeoutMs: number, { version = 0, sessionId = 7n, password = PASSWORD } = {}): Buffer {
  const writer = new JuteWriter();
  writer.int(version);
  writer.int(timeoutMs);
  writer.long(sessionId);
  writer.buffer(password);
  writer.boolean(false);
  return frame(writer.take());
}

/** Returns a message prefixed with its length. */
export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(message.length);
  return Buffer.concat([length, message]);
}

/** Waits for one turn of the event loop, after which all issued requests are sent. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
