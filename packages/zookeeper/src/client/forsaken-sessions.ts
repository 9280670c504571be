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

interface Forsaken {
  readonly session: ClientSession;
  attempts: number;
  link: Link | undefined;
}

export class ForsakenSessions {
  private readonly all = new Set<Forsaken>();

  add(session: ClientSession): void {
    this.all.add({ session, attempts: 0, link: undefined });
  }

  /** A server is there: closes them all in the background. */
  closeAll(settings: LinkSettings): void {
    for (const forsaken of this.all) if (forsaken.link === undefined) this.close(forsaken, settings);
  }

  /** Forgets them. */
  stop(): void {
    for (const { link } of this.all) link?.close();
    this.all.clear();
  }

  private close(forsaken: Forsaken, settings: LinkSettings): void {
    const { id: sessionId, password, timeoutMs } = forsaken.session;
    const done = (link: Link): void => {
      this.all.delete(forsaken);
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
        if (forsaken.link !== undefined) done(forsaken.link);
        return 0;
      },
      onAlive: () => undefined,
      onZxid: () => undefined,
      onAuth: () => undefined,
      onEvent: () => undefined,
      onWatchesSet: () => undefined,
      onDown: () => {
        forsaken.link = undefined;
        if (forsaken.attempts >= MAX_ATTEMPTS) this.all.delete(forsaken);
      },
    };
    forsaken.attempts++;
    try {
      forsaken.link = new Link(settings, handler);
    } catch {
      // The files of a certificate may be in the middle of being renewed; the connection of the client tells of it.
      forsaken.link = undefined;
    }
  }
}
