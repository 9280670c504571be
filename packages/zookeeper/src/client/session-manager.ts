/**
 * Keeps a session with the ensemble: finds a server, resumes the session there, makes a new one when it is lost, until
 * it is closed.
 */

import type { ConnectionState, WatchEvent } from '../api.js';
import { sleep } from '../clock.js';
import { ClosedError, ConnectionLostError, SessionLostError, ZooKeeperError } from '../errors.js';
import type { Call } from './call.js';
import { Credentials } from './credentials.js';
import { ExpiredSessionReaper } from './expired-session-reaper.js';
import type { JuteReader } from './jute-reader.js';
import { Link, type LinkHandler, type LinkSettings } from './link.js';
import { authFrame, closeSessionFrame, connectFrame } from './operations.js';
import type { Settings } from './options.js';
import { NO_SESSION, type ConnectResponse } from './protocol.js';
import { findReadWriteServer } from './read-write-server-search.js';
import { resolveServer } from './resolution.js';
import { ServerList, type Endpoint, type ServerAddress } from './server-list.js';
import { ClientSession } from './session.js';

/** What the keeper tells the client. */
export interface SessionManagerHandler {
  /** There is a connection with a confirmed session. `fresh`: the session is a new one. */
  onUp(link: Link, session: ClientSession, fresh: boolean): void;
  /** The connection is gone. */
  onDown(error: ZooKeeperError): void;
  /** The connection shall be left: `whenIdle` is to be called once what was sent is answered, unless it ends before. */
  onLeave(whenIdle: () => void): void;
  onState(state: ConnectionState): void;
  onLost(session: ClientSession, error: SessionLostError): void;
  /** It gave up for good. Nothing is called after this. */
  onClosed(error: ZooKeeperError): void;
  onWarning(error: ZooKeeperError): void;
  onAnswer(xid: number, code: number, reader: JuteReader): number;
  onEvent(event: WatchEvent): void;
  onWatchesSet(code: number): void;
}

/** A connection that lived for less is counted as a failed attempt, so that a server that drops us is not besieged. */
const STABLE_AFTER_MS = 1000;
/** Ordinary requests have positive numbers. */
const CLOSE_XID = 0;

export class SessionManager {
  state: ConnectionState = 'connecting';
  session: ClientSession | undefined;
  /** The newest transaction that a server told us of. */
  lastZxid = 0n;
  /** Why there is no connection; undefined while there is one. */
  lastProblem: Error | undefined;
  /** Sessions made or resumed. */
  connects = 0;
  private finishedBytes = { sent: 0, received: 0 };
  private readonly servers: ServerList;
  private readonly credentials: Credentials;
  private readonly reaper = new ExpiredSessionReaper();
  /** Ends the search for a server that takes writes. */
  private search: AbortController | undefined;
  /** The present connection is left on purpose. */
  private leaving = false;
  private readonly stop = new AbortController();
  private loop: Promise<void> = Promise.resolve();
  private link: Link | undefined;
  /** The link has a confirmed session. */
  private up = false;
  /** Ends the wait for the present link. */
  private linkOver: () => void = () => undefined;
  private onSessionClosed: (() => void) | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly handler: SessionManagerHandler,
  ) {
    this.servers = new ServerList(settings.servers, settings.random);
    this.credentials = new Credentials(settings.auth.map(({ scheme, auth }) => authFrame(scheme, auth)));
  }

  get bytesSent(): number {
    return this.finishedBytes.sent + (this.link?.bytesSent ?? 0);
  }

  get bytesReceived(): number {
    return this.finishedBytes.received + (this.link?.bytesReceived ?? 0);
  }

  /** Starts to look for a server. */
  start(): void {
    this.loop = this.run().catch((error: unknown) => {
      this.giveUp(
        new ZooKeeperError('server-error', 'the ZooKeeper client failed; this is a defect', { cause: error }),
      );
    });
  }

  /** See `ZooKeeper.addAuth`. */
  addAuth(call: Call<void>): void {
    this.credentials.add(call);
  }

  /** See `ZooKeeper.updateServers`. */
  updateServers(servers: readonly ServerAddress[]): void {
    this.servers.replace(servers);
    const { link } = this;
    if (link === undefined || this.leaving || this.state === 'closed' || this.servers.has(link.endpoint)) return;
    this.leaving = true;
    if (this.up) this.handler.onLeave(() => this.leave(link));
    else this.leave(link);
  }

  /** Ends the session at the server if it can be reached. Resolves when nothing of it is left. */
  async close(): Promise<void> {
    if (this.state !== 'closed') {
      const { link, up } = this;
      const error = new ClosedError('closed', 'the ZooKeeper client was closed');
      // The connection stays for the farewell, but nobody else uses it any more.
      this.up = false;
      this.shutDown(error);
      if (link !== undefined && up) await this.sendCloseSession(link);
      this.dropLink();
    }
    await this.loop;
  }

  private giveUp(error: ZooKeeperError): void {
    this.shutDown(error);
    this.dropLink();
  }

  private shutDown(error: ZooKeeperError): void {
    if (this.state === 'closed') return;
    this.stop.abort(error);
    this.stopSearch();
    this.reaper.stop();
    const { session } = this;
    this.session = undefined;
    this.state = 'closed';
    session?.end(
      new SessionLostError('session-lost', `session ${session.name} ended: ${error.message}`, { cause: error }),
    );
    this.credentials.fail(error);
    this.handler.onClosed(error);
    this.handler.onState('closed');
  }

  /** Tells the server that the session is over, and waits for its answer, not for longer than for any other server's. */
  private async sendCloseSession(link: Link): Promise<void> {
    const answered = new Promise<void>((resolve) => {
      this.onSessionClosed = resolve;
    });
    link.send(closeSessionFrame());
    const timer = this.settings.clock.schedule(this.connectTimeoutMs, () => this.onSessionClosed?.());
    await answered;
    timer.cancel();
  }

  private async run(): Promise<void> {
    const { firstReconnectDelayMs, lastReconnectDelayMs, clock, random } = this.settings;
    let delayMs = firstReconnectDelayMs;
    while (!this.stop.signal.aborted) {
      if (await this.tryAllServers()) {
        delayMs = firstReconnectDelayMs;
        continue;
      }
      await sleep(clock, delayMs * (0.5 + random() / 2), this.stop.signal).catch(() => undefined);
      delayMs = Math.min(delayMs * 2, lastReconnectDelayMs);
    }
  }

  /** True as soon as one has served us for some time. False when all were tried in vain. */
  private async tryAllServers(): Promise<boolean> {
    for (let count = this.servers.size; count > 0; count--) {
      for (const endpoint of await this.resolve(this.servers.take())) {
        if (this.stop.signal.aborted) return false;
        if (await this.serve(endpoint)) return true;
      }
    }
    return false;
  }

  private async resolve(server: ServerAddress): Promise<readonly Endpoint[]> {
    try {
      return await resolveServer(this.servers, server, this.connectTimeoutMs, this.settings.clock, this.stop.signal);
    } catch (error) {
      if (!this.stop.signal.aborted) this.problem(asZooKeeperError(error));
      return [];
    }
  }

  private get connectTimeoutMs(): number {
    return this.settings.connectTimeoutMs ?? this.settings.sessionTimeoutMs / (this.servers.size + 1);
  }

  private linkSettings(endpoint: Endpoint): LinkSettings {
    const { tls, maxAnswerBytes, clock, openWire } = this.settings;
    return { endpoint, tls, maxAnswerBytes, connectTimeoutMs: this.connectTimeoutMs, clock, openWire };
  }

  /** One connection, from its beginning to its end. True when the next one deserves no delay. */
  private async serve(endpoint: Endpoint): Promise<boolean> {
    const { clock } = this.settings;
    const connectsBefore = this.connects;
    const startedAt = clock.monotonic();
    const over = new Promise<void>((resolve) => {
      this.linkOver = resolve;
    });
    try {
      this.link = new Link(this.linkSettings(endpoint), this.linkHandler);
    } catch (error) {
      // The files of a certificate may be in the middle of being renewed.
      this.problem(asZooKeeperError(error));
      return false;
    }
    const hadSession = this.session !== undefined;
    await over;
    const expired = hadSession && this.session === undefined;
    const left = this.leaving;
    this.leaving = false;
    return expired || left || (this.connects > connectsBefore && clock.monotonic() - startedAt >= STABLE_AFTER_MS);
  }

  private readonly linkHandler: LinkHandler = {
    connectRequest: () => {
      const { session } = this;
      const { sessionId, password } =
        session === undefined ? NO_SESSION : { sessionId: session.id, password: session.password };
      const { sessionTimeoutMs: timeoutMs } = this.settings;
      // A session that can write is not taken to a server that cannot confirm it, because it lost touch with the others.
      const readOnly = this.settings.readOnly && session?.readOnly !== false;
      return connectFrame({ lastZxid: this.lastZxid, timeoutMs, sessionId, password, readOnly });
    },
    onEstablished: (link, response, sentAt) => this.established(link, response, sentAt),
    onAnswer: (xid, code, reader) => {
      if (this.state !== 'closed') return this.handler.onAnswer(xid, code, reader);
      if (xid === CLOSE_XID) this.onSessionClosed?.();
      return 0;
    },
    onAlive: (sentAt) => this.session?.proveAlive(sentAt),
    onZxid: (zxid) => {
      if (zxid > this.lastZxid) this.lastZxid = zxid;
    },
    onEvent: (event) => {
      if (this.state !== 'closed') this.handler.onEvent(event);
    },
    onAuth: (code, reader) => {
      if (this.state !== 'closed') this.credentials.answered(code, reader);
    },
    onWatchesSet: (code) => {
      if (this.state !== 'closed') this.handler.onWatchesSet(code);
    },
    onDown: (_link, error) => this.down(error),
  };

  private established(link: Link, response: ConnectResponse, sentAt: number): void {
    const { session } = this;
    if (response.timeoutMs <= 0) {
      if (session === undefined) throw new ZooKeeperError('protocol', `${link.name} refused to make a session`);
      this.lose(session, new SessionLostError('session-lost', `session ${session.name} expired, says ${link.name}`));
      return;
    }
    if (session !== undefined && response.sessionId !== session.id) {
      throw new ZooKeeperError('protocol', `${link.name} answered with another session than ${session.name}`);
    }
    const { sessionId: id, password, timeoutMs, readOnly } = response;
    if (readOnly && (session?.readOnly === false || !this.settings.readOnly)) {
      throw new ZooKeeperError('not-read-only', `${link.name} only serves reads at present`);
    }
    if (session?.readOnly === true && !readOnly) {
      const message = `session ${session.name} only served reads; ${link.name} takes writes`;
      this.lose(session, new SessionLostError('session-lost', message));
      return;
    }
    session?.resume(response.timeoutMs, sentAt);
    const present =
      session ??
      new ClientSession({ id, password, timeoutMs, readOnly, provenAt: sentAt }, this.settings.clock, this.onExpired);
    this.session = present;
    present.confirmed = true;
    this.up = true;
    this.connects++;
    this.lastProblem = undefined;
    link.startHeartbeat(response.timeoutMs);
    this.credentials.connected(link);
    this.state = 'connected';
    if (readOnly) this.startSearch();
    else this.reaper.closeAll(this.linkSettings(link.endpoint));
    this.handler.onUp(link, present, session === undefined);
  }

  /** No server confirmed it in time. It may live on at the servers. */
  private readonly onExpired = (session: ClientSession, error: SessionLostError): void => {
    if (this.session === session && !session.readOnly) this.reaper.add(session);
    this.lose(session, error);
  };

  private startSearch(): void {
    this.stopSearch();
    const search = new AbortController();
    this.search = search;
    const { settings, servers, linkHandler: handler } = this;
    const linkSettings = (endpoint: Endpoint): LinkSettings => this.linkSettings(endpoint);
    const onFound: LinkHandler['onEstablished'] = (link, response, sentAt) => this.moveTo(link, response, sentAt);
    void findReadWriteServer({ settings, servers, linkSettings, handler, onFound }, search.signal);
  }

  private stopSearch(): void {
    this.search?.abort();
    this.search = undefined;
  }

  /** Takes the connection and the session of a server that takes writes, instead of one that does not. */
  private moveTo(link: Link, response: ConnectResponse, sentAt: number): void {
    const { session, linkOver } = this;
    if (session === undefined) return;
    // The loop goes on waiting, now for the end of this connection.
    this.linkOver = () => undefined;
    const message = `session ${session.name} only served reads; ${link.name} takes writes and has made another`;
    this.lose(session, new SessionLostError('session-lost', message));
    this.linkOver = linkOver;
    // A listener may have closed the client.
    if (this.stop.signal.aborted) {
      link.close();
      linkOver();
      return;
    }
    this.link = link;
    this.leaving = false;
    this.established(link, response, sentAt);
  }

  /** The link is not wanted any more. */
  private leave(link: Link): void {
    if (this.link !== link) return;
    this.detach(new ConnectionLostError('connection-lost', `${link.name} is not in the list of servers any more`));
    this.dropLink();
  }

  /** The link ended by itself. */
  private down(error: ZooKeeperError): void {
    this.detach(error);
    if (this.state !== 'closed') {
      if (error.code === 'auth-failed') this.giveUp(error);
      else this.problem(error);
    }
    this.dropLink();
  }

  private lose(session: ClientSession, error: SessionLostError): void {
    if (this.session !== session) return;
    this.session = undefined;
    session.confirmed = false;
    // Servers that were set back to an older state refuse who has seen a newer one. A new session may see an older one.
    this.lastZxid = 0n;
    this.detach(error);
    this.state = 'connecting';
    session.end(error);
    this.handler.onLost(session, error);
    this.handler.onState('connecting');
    this.dropLink();
  }

  /** Nobody uses the link any more. */
  private detach(error: ZooKeeperError): void {
    if (!this.up) return;
    this.up = false;
    this.credentials.disconnected();
    this.stopSearch();
    const { session } = this;
    if (session !== undefined) session.confirmed = false;
    this.state = session === undefined ? 'connecting' : 'suspended';
    this.handler.onDown(error);
    if (session !== undefined) this.handler.onState('suspended');
  }

  private dropLink(): void {
    const { link } = this;
    this.link = undefined;
    if (link !== undefined) {
      link.close();
      this.finishedBytes.sent += link.bytesSent;
      this.finishedBytes.received += link.bytesReceived;
    }
    this.linkOver();
    this.onSessionClosed?.();
  }

  private problem(error: ZooKeeperError): void {
    this.lastProblem = error;
    this.handler.onWarning(error);
  }
}

function asZooKeeperError(error: unknown): ZooKeeperError {
  return error instanceof ZooKeeperError
    ? error
    : new ZooKeeperError('invalid-argument', String(error), { cause: error });
}
