/** A fake server: the test writes every answer. */

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { FrameDecoder } from '../../src/client/frame-decoder.js';
import { JuteReader } from '../../src/client/jute-reader.js';
import { JuteWriter } from '../../src/client/jute-writer.js';

/** A message of the client: its header, and a reader of its body. */
export interface Received {
  readonly xid: number;
  readonly opcode: number;
  readonly body: JuteReader;
}

export interface ConnectRequest {
  readonly lastZxid: bigint;
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Buffer;
  readonly readOnly: boolean;
}

export const SESSION_ID = 0x1234n;
export const PASSWORD = Buffer.from('0123456789abcdef');

export class FakeServer {
  private readonly connections = new Mailbox<FakeConnection>();
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: Server) {
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      this.connections.put(new FakeConnection(socket));
    });
  }

  static async listen(host = '127.0.0.1'): Promise<FakeServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return new FakeServer(server);
  }

  get address(): string {
    const { family, address, port } = this.server.address() as AddressInfo;
    return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
  }

  /** Resolves with the next connection. */
  connection(): Promise<FakeConnection> {
    return this.connections.take();
  }

  /** Resolves with the next connection after granting a session. */
  async session(timeoutMs?: number): Promise<FakeConnection> {
    const connection = await this.connection();
    await connection.handshake(timeoutMs);
    return connection;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

export class FakeConnection {
  private readonly messages = new Mailbox<Buffer>();

  constructor(readonly socket: Socket) {
    const decoder = new FrameDecoder(2 ** 30, {
      onFrame: (bytes, start, end) => this.messages.put(Buffer.from(bytes.subarray(start, end))),
    });
    socket.on('data', (chunk) => decoder.push(chunk));
    socket.on('error', () => socket.destroy());
  }

  /** Resolves when the client has closed the connection. */
  closed(): Promise<void> {
    return this.socket.destroyed
      ? Promise.resolve()
      : new Promise((resolve) => this.socket.once('close', () => resolve()));
  }

  async connectRequest(): Promise<ConnectRequest> {
    const reader = new JuteReader().reset(await this.messages.take());
    reader.int();
    return {
      lastZxid: reader.long(),
      timeoutMs: reader.int(),
      sessionId: reader.long(),
      password: reader.buffer(),
      readOnly: reader.boolean(),
    };
  }

  /** Grants the session that the client proposes, or a new one. */
  async handshake(timeoutMs?: number): Promise<ConnectRequest> {
    const request = await this.connectRequest();
    this.grant(timeoutMs ?? request.timeoutMs, request.sessionId === 0n ? SESSION_ID : request.sessionId);
    return request;
  }

  grant(timeoutMs: number, sessionId: bigint, readOnly = false): void {
    this.send((writer) => {
      writer.int(0);
      writer.int(timeoutMs);
      writer.long(sessionId);
      writer.buffer(PASSWORD);
      writer.boolean(readOnly);
    });
  }

  /** Resolves with the next message of the client. */
  async next(): Promise<Received> {
    const body = new JuteReader().reset(await this.messages.take());
    return { xid: body.int(), opcode: body.int(), body };
  }

  reply(xid: number, zxid: bigint, code: number, write?: (writer: JuteWriter) => void): void {
    this.socket.write(answer(xid, zxid, code, write));
  }

  send(write: (writer: JuteWriter) => void): void {
    this.socket.write(message(write));
  }
}

/** Returns a message prefixed with its length. */
export function message(write: (writer: JuteWriter) => void): Buffer {
  const writer = new JuteWriter();
  writer.int(0);
  write(writer);
  return writer.takeFrame();
}

export function answer(xid: number, zxid: bigint, code: number, write?: (writer: JuteWriter) => void): Buffer {
  return message((writer) => {
    writer.int(xid);
    writer.long(zxid);
    writer.int(code);
    write?.(writer);
  });
}

export function writeStat(writer: JuteWriter, version: number): void {
  for (const value of [1n, 2n, 3n, 4n]) writer.long(value);
  for (const value of [version, 0, 0]) writer.int(value);
  writer.long(0n);
  writer.int(0);
  writer.int(0);
  writer.long(1n);
}

/** A queue of arrivals that tests wait for. */
class Mailbox<T> {
  private readonly items: T[] = [];
  private readonly takers: ((item: T) => void)[] = [];

  put(item: T): void {
    const taker = this.takers.shift();
    if (taker === undefined) this.items.push(item);
    else taker(item);
  }

  take(): Promise<T> {
    const item = this.items.shift();
    return item === undefined ? new Promise((resolve) => this.takers.push(resolve)) : Promise.resolve(item);
  }
}
