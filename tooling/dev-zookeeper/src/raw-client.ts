/**
 * Creates and deletes the root znode of a test run without the client under test: one request at a time over a TCP
 * connection.
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const OPCODE = { create: 1, delete: 2, children: 8, close: -11 } as const;
const NO_NODE = -101;
const NO_AUTH = -102;
const NODE_EXISTS = -110;
const NOT_EMPTY = -111;
const SESSION_TIMEOUT_MS = 60_000;
/** A bound for a server that hangs; a busy machine must not reach it. */
const SOCKET_TIMEOUT_MS = 300_000;

export class RawClient {
  private xid = 0;

  private constructor(private readonly socket: Socket) {}

  /** Connects to the first server of `host:port,…`. */
  static async connect(servers: string): Promise<RawClient> {
    const first = servers.split(',')[0] ?? '';
    const colon = first.lastIndexOf(':');
    const socket = connect(Number(first.slice(colon + 1)), first.slice(0, colon));
    socket.setTimeout(SOCKET_TIMEOUT_MS, () => socket.destroy(new Error(`${first} does not answer`)));
    await once(socket, 'connect');
    const client = new RawClient(socket);
    const request = Buffer.alloc(45);
    request.writeInt32BE(SESSION_TIMEOUT_MS, 12);
    request.writeInt32BE(16, 24);
    await client.exchange(request);
    return client;
  }

  /** Creates a persistent, empty znode. Succeeds if it exists. */
  async create(path: string): Promise<void> {
    const acl = [int(1), int(31), text('world'), text('anyone')];
    await this.request(OPCODE.create, [text(path), int(0), ...acl, int(0)], [NODE_EXISTS]);
  }

  /**
   * Deletes a znode and its descendants, except those that their access list protects. Succeeds if it does not exist.
   */
  async deleteAll(path: string): Promise<void> {
    const answer = await this.request(OPCODE.children, [text(path), Buffer.of(0)], [NO_NODE, NO_AUTH]);
    if (answer === undefined) return;
    let offset = 4;
    for (let left = answer.readInt32BE(0); left > 0; left--) {
      const end = offset + 4 + answer.readInt32BE(offset);
      await this.deleteAll(`${path}/${answer.toString('utf8', offset + 4, end)}`);
      offset = end;
    }
    await this.request(OPCODE.delete, [text(path), int(-1)], [NO_NODE, NO_AUTH, NOT_EMPTY]);
  }

  async close(): Promise<void> {
    await this.request(OPCODE.close, [], []);
    this.destroy();
  }

  /** Ends the connection; the server ends the session later. */
  destroy(): void {
    this.socket.destroy();
  }

  private async request(opcode: number, fields: Buffer[], acceptable: number[]): Promise<Buffer | undefined> {
    const answer = await this.exchange(Buffer.concat([int(++this.xid), int(opcode), ...fields]));
    const code = answer.readInt32BE(12);
    if (code === 0) return answer.subarray(16);
    if (acceptable.includes(code)) return undefined;
    throw new Error(`ZooKeeper answered request ${opcode} with code ${code}`);
  }

  private async exchange(body: Buffer): Promise<Buffer> {
    this.socket.write(Buffer.concat([int(body.length), body]));
    let received = Buffer.alloc(0);
    while (received.length < 4 || received.length < 4 + received.readInt32BE(0)) {
      const [chunk] = (await once(this.socket, 'data')) as [Buffer];
      received = Buffer.concat([received, chunk]);
    }
    return received.subarray(4);
  }
}

function int(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}

function text(value: string): Buffer {
  return Buffer.concat([int(Buffer.byteLength(value)), Buffer.from(value)]);
}
