/** A simulated connection: to the client it is the wire, to the server the place where answers and events go. */

import type { WatchEvent } from '../api.js';
import type { ConnectionHandler, Wire } from '../client/connection.js';
import { FrameDecoder } from '../client/frame-decoder.js';
import type { Clock } from '../clock.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import { LOCAL_IDENTITY, type Identity } from './access.js';
import { Channel } from './channel.js';
import type { EventSink } from './watch-table.js';
import { eventMessage } from './wire.js';

/** The end that the server holds. */
export interface ServerEnd {
  /** One message; the bytes are valid only during the call. Throws when it cannot be understood. */
  onFrame(connection: SimulatedConnection, buffer: Buffer, start: number, end: number): void;
  /** It is over; nothing is called any more. */
  onDown(connection: SimulatedConnection): void;
}

/** Milliseconds that a message takes, asked for each. */
export interface Delays {
  up(): number;
  down(): number;
}

const MAX_REQUEST_BYTES = 16 * 1024 * 1024;
/** Goes before the server's first message. */
const OPENED = Buffer.alloc(0);
/** Comes behind its last. */
const CLOSED = Buffer.alloc(0);

export class SimulatedConnection implements Wire, EventSink {
  bytesSent = 0;
  bytesReceived = 0;
  /** Of the session that was made or resumed on it; the server's business. */
  sessionId: bigint | undefined;
  /** As what its client is known; the server's business. */
  identities: readonly Identity[] = [LOCAL_IDENTITY];
  private readonly up: Channel<Buffer>;
  private readonly down: Channel<Buffer>;
  private held = false;
  private serverGone = false;
  private over = false;

  constructor(
    clock: Clock,
    delays: Delays,
    private readonly server: ServerEnd,
    private readonly client: ConnectionHandler,
  ) {
    const decoder = new FrameDecoder(MAX_REQUEST_BYTES, (buffer, start, end) => {
      if (!this.over && !this.serverGone) server.onFrame(this, buffer, start, end);
    });
    this.up = new Channel(
      clock,
      () => delays.up(),
      (bytes) => decoder.push(bytes),
    );
    this.down = new Channel(
      clock,
      () => delays.down(),
      (message) => this.deliver(message),
    );
    this.down.push(OPENED);
  }

  /** By the client. */
  send(bytes: Buffer): void {
    if (this.over) return;
    this.bytesSent += bytes.length;
    this.up.push(bytes);
  }

  /** By the client, which is not told. */
  destroy(): void {
    if (this.over) return;
    this.finish();
  }

  /** By the server. */
  reply(message: Buffer): void {
    this.down.push(message);
  }

  /** By the server. */
  sendEvent(event: WatchEvent): void {
    this.down.push(eventMessage(event));
  }

  /** Holds both directions up, or lets them go on, as a cut that nobody has noticed yet. */
  hold(held: boolean): void {
    this.held = held;
    if (!held && this.serverGone) {
      this.cut('the server closed the connection');
      return;
    }
    this.up.hold(held);
    this.down.hold(held);
  }

  /** The server is done with it; the client learns that as soon as anything reaches it. */
  closeByServer(reason: string): void {
    if (!this.held) {
      this.cut(reason);
      return;
    }
    this.serverGone = true;
    this.server.onDown(this);
  }

  /** As `closeByServer`, but what was answered still arrives. */
  closeAfterReplies(): void {
    this.serverGone = true;
    this.server.onDown(this);
    this.down.push(CLOSED);
  }

  /** Breaks it: what is under way is lost, both ends are told. Idempotent. */
  cut(reason: string): void {
    if (this.over) return;
    this.finish();
    this.client.onEnd(new ConnectionLostError('connection-lost', `simulated server: ${reason}`));
  }

  private deliver(message: Buffer): void {
    try {
      if (message === OPENED) {
        this.client.onOpen();
        return;
      }
      if (message === CLOSED) {
        this.cut('the server closed the connection');
        return;
      }
      this.bytesReceived += message.length;
      this.client.onBytes();
      this.client.onFrame(message, 0, message.length);
    } catch (error) {
      if (this.over) return;
      this.finish();
      this.client.onEnd(
        error instanceof ZooKeeperError
          ? error
          : new ConnectionLostError('connection-lost', 'an answer could not be handled', { cause: error }),
      );
    }
  }

  private finish(): void {
    this.over = true;
    this.up.close();
    this.down.close();
    if (!this.serverGone) this.server.onDown(this);
  }
}
