/** A server that answers the command `srvr` of ZooKeeper. */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/** The answer of ZooKeeper 3.8.0 of Debian 12. */
export const SRVR = `Zookeeper version: 3.8.0-\${mvngit.commit.id}, built on 2024-12-29 17:54 UTC
Latency min/avg/max: 0/1.2426/22
Received: 587
Sent: 586
Connections: 1
Outstanding: 0
Zxid: 0xee
Mode: standalone
Node count: 16
`;

export interface FakeZooKeeper {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts the server. Without an answer, it accepts connections and stays silent. */
export async function fakeZooKeeper(
  answer: string | undefined,
  tls?: { readonly cert: string; readonly key: string; readonly ca: string },
): Promise<FakeZooKeeper> {
  const sockets = new Set<Socket>();
  const onSocket = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (answer !== undefined) socket.once('data', () => socket.end(answer));
  };
  const server: Server =
    tls === undefined
      ? createServer(onSocket)
      : createTlsServer(
          {
            cert: readFileSync(tls.cert),
            key: readFileSync(tls.key),
            ca: readFileSync(tls.ca),
            requestCert: true,
            rejectUnauthorized: true,
          },
          onSocket,
        );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
