/**
 * Sessions that our own clock ended while no server could be reached. The servers may keep them, and their ephemerals,
 * for as long again: so they are closed as soon as a server is there, each over a connection of its own beside the one of
 * the new session.
 */

import { Link, type LinkHandler, type LinkSettings } from './link.js';
import { closeSessionFrame, connectFrame } from './operations.js';
import type { ClientSession } from './session.js';

/** The servers end it by themselves some time: what does not succeed soon is not worth more. */
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

  /** A server is there: closes them all in the background. */
  closeAll(settings: LinkSettings): void {
    for (const expired of this.all) if (expired.link === undefined) this.close(expired, settings);
  }

  /** Forgets them. */
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
        return 0;
      },
      onAlive: () => undefined,
      onZxid: () => undefined,
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
      // The files of a certificate may be in the middle of being renewed; the connection of the client tells of it.
      expired.link = undefined;
    }
  }
}
