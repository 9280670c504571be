/** One connection to a server: handshake, heartbeat, and dispatch of messages. A failed link is not reused. */

import type { WatchEvent } from '../api.js';
import type { Clock, Timer } from '../clock.js';
import { ConnectionLostError, type ZooKeeperError } from '../errors.js';
import { describeEndpoint, type ConnectionHandler, type OpenWire, type Wire, type TlsSettings } from './connection.js';
import { JuteReader } from './jute-reader.js';
import { Fifo } from './fifo.js';
import type { FrameSink } from './pipeline.js';
import { pingFrame } from './operations.js';
import { readConnectResponse, readWatchEvent, SpecialXid, type ConnectResponse } from './protocol.js';
import type { Endpoint } from './server-list.js';

export interface LinkHandler {
  /** Returns the connect request. Called once the connection is established. */
  connectRequest(): Buffer;
  /** The server answered the connect request, which was sent at `sentAt` (monotonic). Requests may follow. */
  onEstablished(link: Link, response: ConnectResponse, sentAt: number): void;
  /** The server, which has applied all transactions up to `zxid`, answered a request. May throw `protocol`. */
  onAnswer(xid: number, zxid: bigint, code: number, reader: JuteReader): void;
  /** The session was alive at `sentAt`: a ping sent then was answered. */
  onPong(sentAt: number): void;
  onEvent(event: WatchEvent): void;
  /** The server answered the oldest unanswered credential. May throw. */
  onAuth(code: number, reader: JuteReader): void;
  /** The server answered the oldest unanswered `setWatches`. May throw. */
  onWatchesSet(code: number): void;
  /** The link failed. The last call of the handler; not called after `close`. */
  onDown(link: Link, error: ZooKeeperError): void;
}

export interface LinkSettings {
  readonly endpoint: Endpoint;
  readonly tls: TlsSettings | undefined;
  readonly maxAnswerBytes: number;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  readonly openWire: OpenWire;
}

/** The header of every message: number of the request (4 bytes), number of a transaction (8), error code (4). */
const HEADER_BYTES = 16;

export class Link implements FrameSink, ConnectionHandler {
  private readonly connection: Wire;
  private readonly clock: Clock;
  private readonly reader = new JuteReader();
  private timer: Timer | undefined;
  private over = false;
  private established = false;
  private connectSentAt = 0;
  private lastSentAt = 0;
  private lastReceivedAt = 0;
  /** Send times of the unanswered pings. */
  private readonly pings = new Fifo<number>();
  private readTimeoutMs = 0;
  private pingIntervalMs = 0;

  constructor(
    private readonly settings: LinkSettings,
    private readonly handler: LinkHandler,
  ) {
    const { endpoint, tls, maxAnswerBytes, connectTimeoutMs, clock, openWire } = settings;
    this.clock = clock;
    this.connection = openWire(endpoint, tls, maxAnswerBytes, this);
    this.timer = clock.schedule(connectTimeoutMs, () => {
      this.onEnd(this.lost(`no session was confirmed within ${Math.round(connectTimeoutMs)} ms`));
    });
  }

  /** Name of the server, for messages. */
  get name(): string {
    return describeEndpoint(this.settings.endpoint);
  }

  get endpoint(): Endpoint {
    return this.settings.endpoint;
  }

  get bytesSent(): number {
    return this.connection.bytesSent;
  }

  get bytesReceived(): number {
    return this.connection.bytesReceived;
  }

  send(bytes: Buffer): void {
    this.lastSentAt = this.clock.monotonic();
    this.connection.send(bytes);
  }

  /** Starts to ping. The link fails when no byte arrives for two thirds of the session timeout. */
  startHeartbeat(sessionTimeoutMs: number): void {
    this.readTimeoutMs = (sessionTimeoutMs * 2) / 3;
    this.pingIntervalMs = sessionTimeoutMs / 3;
    this.scheduleHeartbeat(this.pingIntervalMs);
  }

  /** Closes the link without calling `onDown`. Idempotent. */
  close(): void {
    this.over = true;
    this.timer?.cancel();
    this.connection.destroy();
  }

  // ---- For the connection

  onOpen(): void {
    this.connectSentAt = this.clock.monotonic();
    this.send(this.handler.connectRequest());
  }

  onBytes(): void {
    this.lastReceivedAt = this.clock.monotonic();
  }

  onFrame(buffer: Buffer, start: number, end: number): void {
    const reader = this.reader.reset(buffer, start, end);
    if (!this.established) {
      this.established = true;
      this.timer?.cancel();
      this.handler.onEstablished(this, readConnectResponse(reader), this.connectSentAt);
      return;
    }
    const at = reader.advance(HEADER_BYTES);
    const xid = reader.view.getInt32(at);
    if (xid === SpecialXid.event) {
      const event = readWatchEvent(reader);
      if (event !== undefined) this.handler.onEvent(event);
      return;
    }
    const zxid = reader.view.getBigInt64(at + 4);
    const code = reader.view.getInt32(at + 12);
    switch (xid) {
      case SpecialXid.ping: {
        const sentAt = this.pings.shift();
        if (sentAt !== undefined) this.handler.onPong(sentAt);
        return;
      }
      case SpecialXid.auth:
        this.handler.onAuth(code, reader);
        return;
      case SpecialXid.setWatches:
        this.handler.onWatchesSet(code);
        return;
      default:
        this.handler.onAnswer(xid, zxid, code, reader);
    }
  }

  onEnd(error: ZooKeeperError): void {
    if (this.over) return;
    this.close();
    this.handler.onDown(this, error);
  }

  // ---- The heartbeat

  private scheduleHeartbeat(delayMs: number): void {
    this.timer = this.clock.schedule(delayMs, () => this.beat(false));
  }

  /**
   * Pings an idle server and fails a silent one. A silent server gets a second check (`suspected`) in a later turn,
   * because its answers may be unread in the socket if this process was blocked.
   */
  private beat(suspected: boolean): void {
    const now = this.clock.monotonic();
    const silence = now - this.lastReceivedAt;
    if (silence >= this.readTimeoutMs) {
      if (suspected) {
        this.onEnd(this.lost(`no byte arrived for ${Math.round(silence)} ms`));
      } else {
        this.timer = this.clock.schedule(0, () => this.beat(true));
      }
      return;
    }
    const idle = now - this.lastSentAt;
    if (idle >= this.pingIntervalMs) {
      this.pings.push(now);
      this.send(pingFrame());
    }
    const untilPing = this.lastSentAt + this.pingIntervalMs - now;
    const untilTimeout = this.lastReceivedAt + this.readTimeoutMs - now;
    // Whole milliseconds, because with fractions a timer can fire early by a rounding error again and again.
    this.scheduleHeartbeat(Math.max(1, Math.ceil(Math.min(untilPing, untilTimeout))));
  }

  private lost(reason: string): ConnectionLostError {
    return new ConnectionLostError('connection-lost', `${this.name}: ${reason}`);
  }
}
