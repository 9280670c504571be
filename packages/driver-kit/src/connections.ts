/** Tracks TCP connections of this process to itself, with their calls and data in transit. */

import { channel, subscribe, type Channel } from 'node:diagnostics_channel';
import { ClientRequest, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { isJsonObject } from '@nodepool/core';

/** One end of a connection, with its peer if that also belongs to this process. */
interface End {
  readonly socket: Socket;
  readonly isClient: boolean;
  peer: End | undefined;
}

/** Key of this process's watch on a diagnostics channel. It is shared if the kit is loaded more than once. */
const WATCH = Symbol.for('@nodepool/driver-kit/connections');

interface WatchedChannel extends Channel {
  [WATCH]: Connections | undefined;
}

/** Returns the watch of this process. It stays: its subscription and its listeners on every socket are permanent. */
export function connectionsOfProcess(): Connections {
  const watched = channel('net.client.socket') as WatchedChannel;
  watched[WATCH] ??= new Connections();
  return watched[WATCH];
}

class Connections {
  private readonly ends = new Map<Socket, End>();
  /** Ends without a known peer, by the client's and the server's port. */
  private readonly single = new Map<string, End>();
  /** The message that a socket is receiving. The socket pauses until the body is read. */
  private readonly messages = new WeakMap<Socket, IncomingMessage>();
  /** Calls of `fetch` that are not sent yet. Node.js compiles its HTTP client before the first one. */
  private readonly unsent = new Set<unknown>();
  /** Number of connections opened and closed, plus bytes received on closed ones. */
  private past = 0;

  constructor() {
    // TLS sockets are added with their calls, all other sockets when they are created.
    subscribe('net.client.socket', (message) => this.addClient(field(message, 'socket')));
    subscribe('undici:client:connected', (message) => this.addClient(field(message, 'socket')));
    subscribe('http.client.request.start', (message) => this.addCall(field(message, 'request')));
    subscribe('net.server.socket', (message) => this.add(field(message, 'socket'), false));
    subscribe('http.server.request.start', (message) => this.receive(field(message, 'request')));
    subscribe('http.client.response.finish', (message) => this.receive(field(message, 'response')));
    subscribe('undici:request:create', (message) => this.unsent.add(field(message, 'request')));
    for (const channel of ['undici:client:sendHeaders', 'undici:request:error'])
      subscribe(channel, (message) => this.unsent.delete(field(message, 'request')));
  }

  /** Describes calls, bytes and connection ends that have not arrived yet. Returns an empty text if there are none. */
  inTransit(): string {
    const calls = this.unsent.size === 0 ? [] : [`${this.unsent.size} calls that were not sent`];
    return [...calls, ...[...this.ends.values()].flatMap((end) => this.awaitedBy(end))].join('; ');
  }

  /** Returns a number that grows when a connection is opened or closed, or receives data. */
  activity(): number {
    return [...this.ends.keys()].reduce((sum, { bytesRead }) => sum + bytesRead, this.past);
  }

  private addCall(request: unknown): void {
    if (!(request instanceof ClientRequest)) return;
    if (request.socket === null) request.once('socket', (socket: Socket) => this.addClient(socket));
    else this.addClient(request.socket);
  }

  private addClient(socket: unknown): void {
    if (!(socket instanceof Socket)) return;
    if (socket.connecting || socket.localPort === undefined) socket.once('connect', () => this.add(socket, true));
    else this.add(socket, true);
  }

  private add(socket: unknown, isClient: boolean): void {
    if (!(socket instanceof Socket) || socket.destroyed || this.ends.has(socket)) return;
    const { localPort, remotePort } = socket;
    const layer = socket instanceof TLSSocket ? 'TLS' : 'TCP';
    const ports = isClient ? `${layer} ${localPort}-${remotePort}` : `${layer} ${remotePort}-${localPort}`;
    const end: End = { socket, isClient, peer: this.single.get(ports) };
    if (end.peer === undefined) {
      this.single.set(ports, end);
    } else {
      end.peer.peer = end;
      this.single.delete(ports);
    }
    this.ends.set(socket, end);
    this.past += 1;
    socket.once('close', () => {
      this.ends.delete(socket);
      this.past += 1 + socket.bytesRead;
      if (this.single.get(ports) === end) this.single.delete(ports);
    });
  }

  private receive(message: unknown): void {
    if (!(message instanceof IncomingMessage) || !(message.socket instanceof Socket)) return;
    this.messages.set(message.socket, message);
    // The message is a request received by a server, or a response received by a client with a known socket.
    this.add(message.socket, false);
  }

  private awaitedBy({ socket, isClient, peer }: End): string[] {
    const { localPort, remotePort, bytesRead } = socket;
    const between = `between ports ${localPort} and ${remotePort}`;
    // A destroyed socket emits `close` one event loop turn later. Clients retry their calls after that.
    if (socket.destroyed) return [`the closing of a connection ${between}`];
    if (socket.readableEnded || this.isFull(socket)) return [];
    // The connection is established before the server accepts it.
    if (peer === undefined) return isClient && bytesRead === 0 ? [`a connection ${between} that was not accepted`] : [];
    const bytes = peer.socket.bytesWritten - bytesRead;
    if (bytes > 0) return [`${bytes} bytes ${between}`];
    return peer.socket.destroyed || peer.socket.writableFinished ? [`the end of the connection ${between}`] : [];
  }

  /** Returns true if the socket pauses until the received data is read. */
  private isFull(socket: Socket): boolean {
    const message = this.messages.get(socket);
    const streams = message === undefined || message.complete ? [socket] : [socket, message];
    return streams.some(({ readableLength, readableHighWaterMark }) => readableLength >= readableHighWaterMark);
  }
}

function field(message: unknown, name: string): unknown {
  return isJsonObject(message) ? (message as Readonly<Record<string, unknown>>)[name] : undefined;
}
