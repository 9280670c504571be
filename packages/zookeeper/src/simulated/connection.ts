/** A simulated connection between a client and the simulated server. */

import type { WatchEvent } from '../api.js';
import type { ConnectionHandler, Wire } from '../client/connection.js';
import { FrameDecoder } from '../client/frame-decoder.js';
import type { Clock } from '../clock.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import { LOCAL_IDENTITY, type ServerIdentity } from './access.js';
import { Channel } from './channel.js';
import type { EventSink } from './watch-table.js';
import { eventMessage } from './wire.js';

export interface ServerEnd {
  /** Handles one message, whose bytes are valid only during the call. Throws if it is malformed. */
  onFrame(connection: SimulatedConnection, buffer: Buffer, start: number, end: number): void;
  /** The connection ended. The last call. */
  onDown(connection: SimulatedConnection): void;
}

/** Transit times in milliseconds, called for each message. */
export interface Delays {
  up(): number;
  down(): number;
}

const MAX_REQUEST_BYTES = 16 * 1024 * 1024;
/** Precedes the server's first message. */
const OPENED = Buffer.alloc(0);
/** Follows the server's last message. */
const CLOSED = Buffer.alloc(0);

export class SimulatedConnection implements Wire, EventSink {
  bytesSent = 0;
  bytesReceived = 0;
  /** Id of the session that was created or resumed on it. Set by the server. */
  sessionId: bigint | undefined;
  /** Identities of the client. Set by the server. */
  identities: readonly ServerIdentity[] = [LOCAL_IDENTITY];
  private readonly up: Channel<Buffer>;
  private readonly down: Channel<Buffer>;
  private held = false;
  private closedByServer = false;
  private over = false;

  constructor(
    clock: Clock,
    delays: Delays,
    private readonly server: ServerEnd,
    private readonly client: ConnectionHandler,
  ) {
    const decoder = new FrameDecoder(MAX_REQUEST_BYTES, {
      onFrame: (buffer, start, end) => {
        if (!this.over && !this.closedByServer) server.onFrame(this, buffer, start, end);
      },
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

  /** Called by the client. */
  send(bytes: Buffer): void {
    if (this.over) return;
    this.bytesSent += bytes.length;
    this.up.push(bytes);
  }

  /** Called by the client; does not call `onEnd`. */
  destroy(): void {
    if (this.over) return;
    this.finish();
  }

  /** Called by the server. */
  reply(message: Buffer): void {
    this.down.push(message);
  }

  /** Called by the server. */
  sendEvent(event: WatchEvent): void {
    this.down.push(eventMessage(event));
  }

  /** Stalls or resumes both directions, like a network partition that neither side has detected. */
  hold(held: boolean): void {
    this.held = held;
    if (!held && this.closedByServer) {
      this.cut('the server closed the connection');
      return;
    }
    this.up.hold(held);
    this.down.hold(held);
  }

  /** Closes the connection at the server. The client notices once the connection is not stalled. */
  closeByServer(reason: string): void {
    if (!this.held) {
      this.cut(reason);
      return;
    }
    this.closedByServer = true;
    this.server.onDown(this);
  }

  /** Closes the connection at the server after the pending answers. */
  closeAfterReplies(): void {
    this.closedByServer = true;
    this.server.onDown(this);
    this.down.push(CLOSED);
  }

  /** Breaks the connection: messages in transit are lost, and both ends are notified. Idempotent. */
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
    if (!this.closedByServer) this.server.onDown(this);
  }
}
