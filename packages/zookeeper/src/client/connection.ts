/** A TCP or TLS connection that carries messages. */

import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '../clock.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import { FrameDecoder, type FrameHandler } from './frame-decoder.js';
import type { Endpoint } from './server-list.js';
import { explainTlsError, tlsMaterialError, type TlsContext } from './tls-errors.js';

/** A chunk of this size may be followed at once by more: it is a full record of TLS, or up to a full buffer of TCP. */
const LARGE_CHUNK_BYTES = 16 * 1024;

/** TLS material as bytes. Files are read again for every connection, so that renewed certificates are taken up. */
export interface TlsSettings {
  readonly servername: string | undefined;
  material(): { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer };
}

export interface ConnectionHandler {
  /** The connection is made (with TLS: and encrypted). */
  onOpen(): void;
  /** Something arrived, be it only a part of a message. Comes before the messages that it completes. */
  onBytes(): void;
  onFrame: FrameHandler;
  /** It is over; nothing is called any more. Not called after `destroy`. */
  onEnd(error: ZooKeeperError): void;
}

/** What a link needs of a connection: the socket of a real one, or the two streams of a simulated one. */
export interface Wire {
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Takes over the bytes. */
  send(bytes: Buffer): void;
  /** Ends it at once, without a call of `onEnd`. Idempotent. */
  destroy(): void;
}

/** Opens a connection in the background. Throws when the TLS material cannot be read. */
export type OpenWire = (
  endpoint: Endpoint,
  tls: TlsSettings | undefined,
  maxFrameBytes: number,
  handler: ConnectionHandler,
) => Wire;

export const openConnection: OpenWire = (endpoint, tls, maxFrameBytes, handler) =>
  new Connection(endpoint, tls, maxFrameBytes, handler);

export class Connection implements Wire {
  bytesSent = 0;
  bytesReceived = 0;
  private readonly socket: Socket;
  /** Undefined: plain TCP. */
  private readonly tlsContext: Omit<TlsContext, 'now'> | undefined;
  private ended = false;

  /** Throws when the TLS material cannot be read. */
  constructor(
    private readonly endpoint: Endpoint,
    tls: TlsSettings | undefined,
    maxFrameBytes: number,
    private readonly handler: ConnectionHandler,
  ) {
    if (tls === undefined) {
      this.socket = connectTcp({ host: endpoint.ip, port: endpoint.port });
    } else {
      const { socket, context } = openTls(endpoint, tls);
      this.socket = socket;
      this.tlsContext = context;
    }
    const decoder = new FrameDecoder(maxFrameBytes, (buffer, start, end) => {
      // Bytes that follow what ended the connection are of no interest.
      if (!this.ended) this.handler.onFrame(buffer, start, end);
    });
    this.socket.setNoDelay(true);
    this.socket.once(tls === undefined ? 'connect' : 'secureConnect', () => this.opened());
    this.socket.on('data', (chunk: Buffer) => this.received(decoder, chunk));
    this.socket.on('error', (error: Error) => this.end(this.lost(this.explain(error), error)));
    this.socket.once('close', () => this.end(this.lost('the server closed the connection')));
  }

  send(bytes: Buffer): void {
    if (this.ended) return;
    this.bytesSent += bytes.length;
    this.socket.write(bytes);
  }

  /** Ends it at once, without a call of `onEnd`. Idempotent. */
  destroy(): void {
    this.ended = true;
    this.socket.destroy();
  }

  private opened(): void {
    if (this.ended) return;
    const { localAddress, localPort, remoteAddress, remotePort } = this.socket;
    // TCP allows two sides to open towards each other. A client that tries a local port at which nobody listens meets
    // itself there sooner or later, and would take its own request for the server's answer.
    if (localPort === remotePort && localAddress === remoteAddress) {
      this.end(this.lost('nobody listens at its port: the connection led back to this very socket'));
      return;
    }
    this.handler.onOpen();
  }

  private received(decoder: FrameDecoder, chunk: Buffer): void {
    if (this.ended) return;
    this.bytesReceived += chunk.length;
    this.handler.onBytes();
    try {
      decoder.push(chunk);
    } catch (error) {
      this.end(error instanceof ZooKeeperError ? error : this.lost('its answer could not be handled', error));
      return;
    }
    if (chunk.length >= LARGE_CHUNK_BYTES) this.pauseForTurn();
  }

  /** Reads on in the next turn of the event loop. Without a pause, one turn handles all that arrives during it. */
  private pauseForTurn(): void {
    this.socket.pause();
    setImmediate(() => {
      if (!this.ended) this.socket.resume();
    });
  }

  private end(error: ZooKeeperError): void {
    if (this.ended) return;
    this.destroy();
    this.handler.onEnd(error);
  }

  private explain(error: Error): string {
    if (this.tlsContext === undefined) return error.message;
    return explainTlsError(error, { ...this.tlsContext, now: systemClock.now() });
  }

  private lost(reason: string, cause?: unknown): ConnectionLostError {
    return new ConnectionLostError('connection-lost', `${describeEndpoint(this.endpoint)}: ${reason}`, { cause });
  }
}

function openTls(
  { ip, host, port }: Endpoint,
  tls: TlsSettings,
): { readonly socket: Socket; readonly context: Omit<TlsContext, 'now'> } {
  const material = tls.material();
  // An address is no server name; then the certificate is compared with the address itself.
  const servername = tls.servername ?? (isIP(host) === 0 ? host : undefined);
  const name = servername === undefined ? {} : { servername };
  try {
    const socket = connectTls({ ...material, host: ip, port, ...name, rejectUnauthorized: true });
    return { socket, context: { expectedName: servername ?? ip, certificate: material.cert } };
  } catch (error) {
    throw tlsMaterialError(error);
  }
}

/** E.g. `zk1.example.org:2281 (192.0.2.1)`. */
export function describeEndpoint({ host, port, ip }: Endpoint): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return ip === host ? `${name}:${port}` : `${name}:${port} (${ip})`;
}
