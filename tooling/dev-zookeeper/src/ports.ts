/** Free TCP ports of the loopback interface. */

import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

/**
 * Ports below the kernel's range for outgoing connections. Inside that range, a client that retries to connect to a
 * stopped server can get the server's port, or connect to itself.
 */
const LOWEST = 15_000;
const HIGHEST = 32_000;
const ATTEMPTS = 200;

/** Returns `count` different unused ports. No other process that reserves ports this way gets them meanwhile. */
export async function freePorts(count: number): Promise<number[]> {
  const held: Server[] = [];
  const ports: number[] = [];
  try {
    for (let attempt = 0; ports.length < count; attempt++) {
      if (attempt === ATTEMPTS) throw new Error(`no ${count} free ports between ${LOWEST} and ${HIGHEST}`);
      const port = randomInt(LOWEST, HIGHEST);
      const server = await listen(port);
      if (server === undefined) continue;
      held.push(server);
      if (await reserve(port)) ports.push(port);
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  }
  return ports;
}

/**
 * Reserves a port with an abstract socket, which ends with this process. Returns false if another process has reserved
 * it. Systems other than Linux have no abstract sockets.
 */
function reserve(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true);
  return new Promise((resolve) => {
    const reservation = createServer();
    reservation.once('error', () => resolve(false));
    reservation.listen(`\0nodepool-port-${port}`, () => resolve(true));
    reservation.unref();
  });
}

function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
