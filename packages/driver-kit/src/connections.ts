/** The TCP connections of this process with itself, and the data and calls that are on their way to them and in them. */

import { channel, subscribe, type Channel } from 'node:diagnostics_channel';
import { ClientRequest, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { isJsonObject } from '@nodepool/core';

/** One end of a connection, and the other one if it belongs to this process, too. */
interface End {
  readonly socket: Socket;
  readonly isClient: boolean;
  peer: End | undefined;
}

/** Property of a diagnostics channel that has the watch of this process: the kit may be loaded more than once. */
const WATCH = Symbol.for('@nodepool/driver-kit/connections');

interface WatchedChannel extends Channel {
  [WATCH]: Connections | undefined;
}

/** Returns the one watch of this process: it subscribes for good, and adds listeners to every socket. */
export function connectionsOfProcess(): Connections {
  const watched = channel('net.client.socket') as WatchedChannel;
  watched[WATCH] ??= new Connections();
  return watched[WATCH];
}

class Connections {
  private readonly ends = new Map<Socket, End>();
  /** Ends whose other end has not been seen, by the ports of client and server. */
  private readonly single = new Map<string, End>();
  /** The message that a socket receives, which stops to read from it while nothing takes the body. */
  private readonly messages = new WeakMap<Socket, IncomingMessage>();
  /** Calls of `fetch` that have begun and were not sent: Node.js compiles its HTTP client before the first one. */
  private readonly unsent = new Set<unknown>();
  /** Connections opened and closed, and bytes received on closed ones. */
  private past = 0;

  constructor() {
    // Sockets with TLS are seen with the calls in them, all others when they are made.
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

  /** Describes what has not arrived yet: calls, bytes, and ends of connections. Empty if there is nothing. */
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
    // A request was received by a server, a response by a client, whose socket is known.
    this.add(message.socket, false);
  }

  private awaitedBy({ socket, isClient, peer }: End): string[] {
    const { localPort, remotePort, bytesRead } = socket;
    const between = `between ports ${localPort} and ${remotePort}`;
    // A destroyed socket emits `close` a turn of the event loop later, and clients then retry their calls.
    if (socket.destroyed) return [`the closing of a connection ${between}`];
    if (socket.readableEnded || this.isFull(socket)) return [];
    // A connection is established before the server accepts it.
    if (peer === undefined) return isClient && bytesRead === 0 ? [`a connection ${between} that was not accepted`] : [];
    const bytes = peer.socket.bytesWritten - bytesRead;
    if (bytes > 0) return [`${bytes} bytes ${between}`];
    return peer.socket.destroyed || peer.socket.writableFinished ? [`the end of the connection ${between}`] : [];
  }

  /** True if the socket is not read from before what has been received is used. */
  private isFull(socket: Socket): boolean {
    const message = this.messages.get(socket);
    const streams = message === undefined || message.complete ? [socket] : [socket, message];
    return streams.some(({ readableLength, readableHighWaterMark }) => readableLength >= readableHighWaterMark);
  }
}

function field(message: unknown, name: string): unknown {
  return isJsonObject(message) ? (message as Readonly<Record<string, unknown>>)[name] : undefined;
}
