import type { ConnectionHandler, Wire } from '../client/connection.js';
import { ConnectionLostError } from '../errors.js';

/** A connection that never opens: it stays silent or, with a handler, is refused. */
export class DeadWire implements Wire {
  readonly bytesSent = 0;
  readonly bytesReceived = 0;
  private destroyed = false;

  constructor(handler?: ConnectionHandler) {
    if (handler === undefined) return;
    queueMicrotask(() => {
      if (this.destroyed) return;
      handler.onEnd(new ConnectionLostError('connection-lost', 'simulated server: the connection was refused'));
    });
  }

  send(): void {
    throw new ConnectionLostError('connection-lost', 'simulated server: there is no connection to send on');
  }

  destroy(): void {
    this.destroyed = true;
  }
}
