/** TCP connections that are closed in any case, at the latest after a time limit. */

import { connect, type Socket } from 'node:net';
import { abortReason, type Clock, type Timer } from '@nodepool/core';

/** Limit for connecting, milliseconds: a booting node often does not answer, and the attempt occupies a permit. */
const CONNECT_TIMEOUT_MS = 3000;
/** Limit for the use of a connection, milliseconds. */
const USE_TIMEOUT_MS = 10_000;

export interface Endpoint {
  /** Address (IPv4 or IPv6) or name. */
  readonly host: string;
  readonly port: number;
}

export interface ConnectionEnvironment {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Connects, passes the connection to `use`, and closes it. Rejects if the connection fails, closes before `use` is done
 * or takes too long, and with the signal's reason if it aborts.
 */
export async function withConnection<T>(
  endpoint: Endpoint,
  { clock, signal }: ConnectionEnvironment,
  use: (socket: Socket) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const socket = connect({ host: endpoint.host, port: endpoint.port, noDelay: true });
  let onAbort: () => void = () => undefined;
  const interruption = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(abortReason(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the connection was closed by the other side')));
  });
  const limit = (ms: number): Timer => clock.schedule(ms, () => socket.destroy(new Error(`no answer within ${ms} ms`)));
  let timer = limit(CONNECT_TIMEOUT_MS);
  const work = async (): Promise<T> => {
    await connected(socket);
    timer.cancel();
    timer = limit(USE_TIMEOUT_MS);
    return use(socket);
  };
  try {
    return await Promise.race([interruption, work()]);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', onAbort);
    socket.destroy();
  }
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('connect', resolve));
}
