/** A server that accepts every connection and never answers, like a cloud that hangs on every call. */

import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface BlackHole {
  readonly endpoint: string;
  close(): Promise<void>;
}

/** Listens on a free port of the loopback interface. */
export async function openBlackHole(): Promise<BlackHole> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // A client that times out resets the connection, which is expected here.
    socket.on('error', () => socket.destroy());
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
