/** A TCP or TLS connection that carries messages. */

import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '../clock.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import { FrameDecoder, type FrameHandler } from './frame-decoder.js';
import type { Endpoint } from './server-list.js';
import { explainClosing, explainTlsError, tlsMaterialError, type TlsContext } from './tls-errors.js';

/** Bytes. A chunk of this size suggests that more is waiting: it is a full TLS record, or a full TCP buffer. */
const LARGE_CHUNK_BYTES = 16 * 1024;
/** Size of the buffer that receives all bytes of a connection. */
const RECEIVE_BYTES = 64 * 1024;

/** TLS settings. `material` reads files for every connection, so that renewed certificates take effect. */
export interface TlsSettings {
  readonly servername: string | undefined;
  readonly verifyHostname: boolean;
  material(): { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer };
}

export interface ConnectionHandler extends FrameHandler {
  /** The connection is established, including TLS. */
  onOpen(): void;
  /** Bytes arrived, possibly a part of a message. Called before the messages that they complete. */
  onBytes(): void;
  /** The connection ended. The last call of the handler; not called after `destroy`. */
  onEnd(error: ZooKeeperError): void;
}

/** A byte stream to a server: a socket, or a simulated connection. */
export interface Wire {
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Sends bytes, which the caller must not modify afterwards. */
  send(bytes: Buffer): void;
  /** Closes the connection at once, without calling `onEnd`. Idempotent. */
  destroy(): void;
}

/** Opens a connection in the background. Throws if the TLS material cannot be read. */
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
  private readonly decoder: FrameDecoder;
  private readonly socket: Socket;
  /** Set for TLS connections. */
  private readonly tlsContext: Omit<TlsContext, 'now'> | undefined;
  private ended = false;

  /** Throws if the TLS material cannot be read. */
  constructor(
    private readonly endpoint: Endpoint,
    tls: TlsSettings | undefined,
    maxFrameBytes: number,
    private readonly handler: ConnectionHandler,
  ) {
    this.decoder = new FrameDecoder(maxFrameBytes, handler);
    // With a buffer of its own, a socket reads without the stream and without an allocation for each chunk.
    const received = Buffer.allocUnsafeSlow(RECEIVE_BYTES);
    const onread: OnReadOpts = {
      buffer: received,
      callback: (length) => this.received(received, length),
    };
    if (tls === undefined) {
      this.socket = connectTcp({ host: endpoint.ip, port: endpoint.port, onread });
    } else {
      const { socket, context } = openTls(endpoint, tls, onread);
      this.socket = socket;
      this.tlsContext = context;
    }
    this.socket.setNoDelay(true);
    this.socket.once(tls === undefined ? 'connect' : 'secureConnect', () => this.opened());
    this.socket.on('error', (error: Error) => this.end(this.lost(this.explain(error), error)));
    this.socket.once('close', () => this.end(this.lost(this.explainClosing())));
  }

  send(bytes: Buffer): void {
    if (this.ended) return;
    this.bytesSent += bytes.length;
    this.socket.write(bytes);
  }

  destroy(): void {
    this.ended = true;
    this.decoder.stop();
    this.socket.destroy();
  }

  private opened(): void {
    if (this.ended) return;
    const { localAddress, localPort, remoteAddress, remotePort } = this.socket;
    // TCP simultaneous open: a client that connects to a free local port can be assigned that port itself. It would
    // then read its own request as the server's answer.
    if (localPort === remotePort && localAddress === remoteAddress) {
      this.end(this.lost('no server listens on this port: the socket connected to itself'));
      return;
    }
    this.handler.onOpen();
  }

  /** Returns false to pause the socket. */
  private received(bytes: Buffer, length: number): boolean {
    if (this.ended) return false;
    this.bytesReceived += length;
    this.handler.onBytes();
    try {
      this.decoder.push(bytes, length);
    } catch (error) {
      this.end(error instanceof ZooKeeperError ? error : this.lost('its answer could not be handled', error));
      return false;
    }
    if (length < LARGE_CHUNK_BYTES) return true;
    this.resumeInTurn();
    return false;
  }

  /** Resumes reading in the next turn of the event loop, so that one turn does not process an endless stream. */
  private resumeInTurn(): void {
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

  private explainClosing(): string {
    if (this.tlsContext === undefined || this.bytesReceived > 0) return 'the server closed the connection';
    return explainClosing({ ...this.tlsContext, now: systemClock.now() });
  }

  private lost(reason: string, cause?: unknown): ConnectionLostError {
    return new ConnectionLostError('connection-lost', `${describeEndpoint(this.endpoint)}: ${reason}`, { cause });
  }
}

function openTls(
  { ip, host, port }: Endpoint,
  tls: TlsSettings,
  onread: OnReadOpts,
): { readonly socket: Socket; readonly context: Omit<TlsContext, 'now'> } {
  const material = tls.material();
  // TLS allows no address as a server name. Node.js then compares the certificate with the address.
  const servername = tls.servername ?? (isIP(host) === 0 ? host : undefined);
  const name = servername === undefined ? {} : { servername };
  try {
    const anyHost = tls.verifyHostname ? {} : { checkServerIdentity: () => undefined };
    const options = { ...material, host: ip, port, ...name, ...anyHost, rejectUnauthorized: true, onread };
    const socket = connectTls(options);
    return { socket, context: { expectedName: servername ?? ip, certificate: material.cert } };
  } catch (error) {
    throw tlsMaterialError(error);
  }
}

/** Returns the endpoint for messages, e.g. `zk1.example.org:2281 (192.0.2.1)`. */
export function describeEndpoint({ host, port, ip }: Endpoint): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return ip === host ? `${name}:${port}` : `${name}:${port} (${ip})`;
}
