/**
 * Closes sessions that expired by the client's clock while no server could be reached. The servers may keep them, and
 * their ephemeral znodes, for another timeout. Each is closed over a separate connection.
 */

import { Link, type LinkHandler, type LinkSettings } from './link.js';
import { closeSessionFrame, connectFrame } from './operations.js';
import type { ClientSession } from './session.js';

/** Attempts per session. More are not needed, because the servers expire the session eventually. */
const MAX_ATTEMPTS = 3;

interface ExpiredSession {
  readonly session: ClientSession;
  attempts: number;
  link: Link | undefined;
}

export class ExpiredSessionReaper {
  private readonly all = new Set<ExpiredSession>();

  add(session: ClientSession): void {
    this.all.add({ session, attempts: 0, link: undefined });
  }

  /** Closes all sessions in the background. Call when a server is reachable. */
  closeAll(settings: LinkSettings): void {
    for (const expired of this.all) if (expired.link === undefined) this.close(expired, settings);
  }

  /** Abandons all sessions and closes their connections. */
  stop(): void {
    for (const { link } of this.all) link?.close();
    this.all.clear();
  }

  private close(expired: ExpiredSession, settings: LinkSettings): void {
    const { id: sessionId, password, timeoutMs } = expired.session;
    const done = (link: Link): void => {
      this.all.delete(expired);
      link.close();
    };
    const handler: LinkHandler = {
      connectRequest: () => connectFrame({ lastZxid: 0n, timeoutMs, sessionId, password, readOnly: false }),
      onEstablished: (link, response) => {
        if (response.timeoutMs <= 0) {
          done(link);
          return;
        }
        link.startHeartbeat(response.timeoutMs);
        link.send(closeSessionFrame());
      },
      onAnswer: () => {
        if (expired.link !== undefined) done(expired.link);
      },
      onPong: () => undefined,
      onAuth: () => undefined,
      onEvent: () => undefined,
      onWatchesSet: () => undefined,
      onDown: () => {
        expired.link = undefined;
        if (expired.attempts >= MAX_ATTEMPTS) this.all.delete(expired);
      },
    };
    expired.attempts++;
    try {
      expired.link = new Link(settings, handler);
    } catch {
      // A certificate file may be incomplete during its renewal. The client's own connection reports it.
      expired.link = undefined;
    }
  }
}
