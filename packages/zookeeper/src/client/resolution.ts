import { sleep, type Clock } from '../clock.js';
import { ConnectionLostError } from '../errors.js';
import type { Endpoint, ServerAddress, ServerList } from './server-list.js';

/**
 * Returns the current endpoints of a server. Rejects with `ConnectionLostError` if its name cannot be resolved within
 * `timeoutMs`, and when `stop` aborts.
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
    const message = `${server.host}:${server.port}: cannot resolve the name: ${reason}`;
    throw new ConnectionLostError('connection-lost', message, { cause: error });
  } finally {
    enough.abort();
    tooLate.catch(() => undefined);
  }
}
