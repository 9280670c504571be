/** Looks for a server that takes writes, while the client is at one that only serves reads. */

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
  /** What is told of the connection that was found, once it was found. */
  readonly handler: LinkHandler;
  /** A server made a session that can write. */
  readonly onFound: LinkHandler['onEstablished'];
}

/**
 * Asks every server for a session that can write, which only one that takes writes gives, until one does or `stop`
 * aborts. The time between two rounds grows as between attempts to connect. Never rejects; servers that cannot be
 * reached are of no interest.
 */
export async function findReadWriteServer(port: SearchPort, stop: AbortSignal): Promise<void> {
  const { firstReconnectDelayMs, lastReconnectDelayMs, clock, random } = port.settings;
  let delayMs = firstReconnectDelayMs;
  for (;;) {
    await sleep(clock, delayMs * (0.5 + random() / 2), stop).catch(() => undefined);
    if (stop.aborted || (await askAll(port, stop))) return;
    delayMs = Math.min(delayMs * 2, lastReconnectDelayMs);
  }
}

/** True when it is over: one was found, or `stop` aborted. */
async function askAll(port: SearchPort, stop: AbortSignal): Promise<boolean> {
  const { servers, settings } = port;
  for (let count = servers.size; count > 0; count--) {
    const server = servers.take();
    // The time for the name of a server is the same as for a server itself.
    const timeoutMs = settings.connectTimeoutMs ?? settings.sessionTimeoutMs / (servers.size + 1);
    const endpoints = await resolveServer(servers, server, timeoutMs, settings.clock, stop).catch(() => []);
    for (const endpoint of endpoints) {
      if (stop.aborted || (await ask(port, endpoint, stop))) return true;
    }
  }
  return stop.aborted;
}

function ask(port: SearchPort, endpoint: Endpoint, stop: AbortSignal): Promise<boolean> {
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
        throw new ZooKeeperError('protocol', `${established.name} does not make a session that can write`);
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
      // The files of a certificate may be in the middle of being renewed; whoever connects next tells of it.
      settle(false);
    }
  });
}
