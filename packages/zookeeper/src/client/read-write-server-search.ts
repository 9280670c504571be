/** Searches for a read-write server while the client is connected to a read-only one. */

import { sleep } from '../clock.js';
import { ZooKeeperError } from '../errors.js';
import { Link, type LinkHandler, type LinkSettings } from './link.js';
import { connectFrame } from './operations.js';
import type { Settings } from './options.js';
import { NO_SESSION } from './protocol.js';
import { resolveServer } from './resolution.js';
import type { Endpoint, ServerList } from './server-list.js';

export interface SearchPort {
  readonly settings: Settings;
  readonly servers: ServerList;
  linkSettings(endpoint: Endpoint): LinkSettings;
  /** The handler of the connection that the search finds. */
  readonly handler: LinkHandler;
  /** A server created a read-write session. */
  readonly onFound: LinkHandler['onEstablished'];
}

/**
 * Requests a read-write session from each server in turn until one grants it or `stop` aborts. Delays between rounds
 * grow as those between connection attempts. Ignores unreachable servers; never rejects.
 */
export async function findReadWriteServer(port: SearchPort, stop: AbortSignal): Promise<void> {
  const { firstReconnectDelayMs, lastReconnectDelayMs, clock, random } = port.settings;
  let delayMs = firstReconnectDelayMs;
  for (;;) {
    await sleep(clock, delayMs * (0.5 + random() / 2), stop).catch(() => undefined);
    if (stop.aborted || (await tryAllServers(port, stop))) return;
    delayMs = Math.min(delayMs * 2, lastReconnectDelayMs);
  }
}

/** Tries each server once. Returns true if one was found or `stop` aborted. */
async function tryAllServers(port: SearchPort, stop: AbortSignal): Promise<boolean> {
  const { servers, settings } = port;
  for (let count = servers.size; count > 0; count--) {
    const server = servers.take();
    // Resolving a name has the same timeout as connecting.
    const timeoutMs = settings.connectTimeoutMs ?? settings.sessionTimeoutMs / (servers.size + 1);
    const endpoints = await resolveServer(servers, server, timeoutMs, settings.clock, stop).catch(() => []);
    for (const endpoint of endpoints) {
      if (stop.aborted || (await tryEndpoint(port, endpoint, stop))) return true;
    }
  }
  return stop.aborted;
}

function tryEndpoint(port: SearchPort, endpoint: Endpoint, stop: AbortSignal): Promise<boolean> {
  const { handler, onFound, settings } = port;
  return new Promise((resolve) => {
    let found = false;
    const settle = (result: boolean): void => {
      stop.removeEventListener('abort', onStop);
      resolve(result);
    };
    const onStop = (): void => {
      link?.close();
      settle(true);
    };
    const onEstablished: LinkHandler['onEstablished'] = (established, response, sentAt) => {
      if (response.timeoutMs <= 0 || response.readOnly) {
        throw new ZooKeeperError('protocol', `${established.name} does not grant a read-write session`);
      }
      found = true;
      settle(true);
      onFound(established, response, sentAt);
    };
    let link: Link | undefined;
    stop.addEventListener('abort', onStop, { once: true });
    try {
      link = new Link(port.linkSettings(endpoint), {
        ...handler,
        connectRequest: () =>
          connectFrame({ ...NO_SESSION, lastZxid: 0n, timeoutMs: settings.sessionTimeoutMs, readOnly: false }),
        onEstablished,
        onDown: (down, error) => (found ? handler.onDown(down, error) : settle(false)),
      });
    } catch {
      // A certificate file may be incomplete during its renewal. The next connection of the client reports it.
      settle(false);
    }
  });
}
