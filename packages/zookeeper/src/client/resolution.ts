/** Turns the name of a server into the places to connect to, within a time. */

import { sleep, type Clock } from '../clock.js';
import { ConnectionLostError } from '../errors.js';
import type { Endpoint, ServerAddress, ServerList } from './server-list.js';

/**
 * The addresses of a server at this moment. Rejects with `ConnectionLostError` when its name cannot be resolved, also
 * when `stop` aborts.
 */
export async function resolveServer(
  servers: ServerList,
  server: ServerAddress,
  timeoutMs: number,
  clock: Clock,
  stop: AbortSignal,
): Promise<readonly Endpoint[]> {
  const enough = new AbortController();
  const tooLate = sleep(clock, timeoutMs, AbortSignal.any([enough.signal, stop])).then(() => {
    throw new Error(`no answer within ${Math.round(timeoutMs)} ms`);
  });
  try {
    return await Promise.race([servers.resolve(server), tooLate]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `${server.host}:${server.port}: its name cannot be resolved: ${reason}`;
    throw new ConnectionLostError('connection-lost', message, { cause: error });
  } finally {
    enough.abort();
    tooLate.catch(() => undefined);
  }
}
