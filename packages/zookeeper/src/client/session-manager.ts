/** Maintains a session: connects to a server, resumes the session on other connections, replaces a lost session. */

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

export interface AnswerReceiver {
  /** Handles an answer, and returns the time when its request was sent (monotonic). May throw `protocol`. */
  answer(xid: number, code: number, reader: JuteReader): number;
}

export interface EventReceiver {
  onEvent(event: WatchEvent): void;
  /** The server answered the oldest unanswered `setWatches`. May throw. */
  onWatchesSet(code: number): void;
}

export interface SessionManagerHandler {
  /** A connection with a confirmed session is established. `fresh` is true for a new session. */
  onUp(link: Link, session: ClientSession, fresh: boolean): void;
  onDown(error: ZooKeeperError): void;
  /** The connection is about to be replaced. Send nothing more, and call `whenIdle` once every request is answered. */
  onDrain(whenIdle: () => void): void;
  onState(state: ConnectionState): void;
  onLost(session: ClientSession, error: SessionLostError): void;
  /** The client is closed. The last call but `onState`. */
  onClosed(error: ZooKeeperError): void;
  onWarning(error: ZooKeeperError): void;
  readonly answers: AnswerReceiver;
  readonly events: EventReceiver;
}

/** Milliseconds. A shorter connection counts as a failed attempt, so that a server is not flooded with attempts. */
const STABLE_AFTER_MS = 1000;
/** Request number of `closeSession`; those of ordinary requests are positive. */
const CLOSE_XID = 0;

export class SessionManager {
  state: ConnectionState = 'connecting';
  session: ClientSession | undefined;
  /** The newest transaction that the client has seen. */
  lastZxid = 0n;
  /** Reason why there is no connection; undefined while connected. */
  lastProblem: Error | undefined;
  connects = 0;
  private finishedBytes = { sent: 0, received: 0 };
  private readonly servers: ServerList;
  private readonly credentials: Credentials;
  private readonly reaper = new ExpiredSessionReaper();
  /** Stops the search for a read-write server. */
  private search: AbortController | undefined;
  /** True while the connection drains to be replaced. */
  private draining = false;
  private readonly stop = new AbortController();
  private loop: Promise<void> = Promise.resolve();
  private link: Link | undefined;
  /** True if the link has a confirmed session. */
  private up = false;
  /** Ends the wait of `serve` for the end of the link. */
  private linkOver: () => void = () => undefined;
  private onSessionClosed: (() => void) | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly handler: SessionManagerHandler,
  ) {
    this.servers = new ServerList(settings.servers, settings.random);
    this.credentials = new Credentials(settings.auth.map(({ scheme, auth }) => authFrame(scheme, auth)));
  }

  get server(): string | undefined {
    return this.up ? this.link?.name : undefined;
  }

  get bytesSent(): number {
    return this.finishedBytes.sent + (this.link?.bytesSent ?? 0);
  }

  get bytesReceived(): number {
    return this.finishedBytes.received + (this.link?.bytesReceived ?? 0);
  }

  start(): void {
    this.loop = this.run().catch((error: unknown) => {
      this.abandon(
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
    if (link === undefined || this.draining || this.state === 'closed' || this.servers.has(link.endpoint)) return;
    this.draining = true;
    if (this.up) this.handler.onDrain(() => this.dropDrained(link));
    else this.dropDrained(link);
  }

  /** Closes the session, at the server too if it is reachable. Resolves when all background work has ended. */
  async close(): Promise<void> {
    if (this.state !== 'closed') {
      const { link, up } = this;
      const error = new ClosedError('closed', 'the ZooKeeper client was closed');
      // From here only `sendCloseSession` uses the connection.
      this.up = false;
      this.shutDown(error);
      if (link !== undefined && up) await this.sendCloseSession(link);
      this.dropLink();
    }
    await this.loop;
  }

  private abandon(error: ZooKeeperError): void {
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

  /** Closes the session at the server. Waits for the answer for at most the connect timeout. */
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

  /** Tries each server once. Returns true once a connection was stable, false if all attempts failed. */
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

  /** Runs one connection until it ends. Returns true if the next attempt needs no delay. */
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
      // A certificate file may be incomplete during its renewal.
      this.problem(asZooKeeperError(error));
      return false;
    }
    const hadSession = this.session !== undefined;
    await over;
    const expired = hadSession && this.session === undefined;
    const drained = this.draining;
    this.draining = false;
    return expired || drained || (this.connects > connectsBefore && clock.monotonic() - startedAt >= STABLE_AFTER_MS);
  }

  private readonly linkHandler: LinkHandler = {
    connectRequest: () => {
      const { session } = this;
      const { sessionId, password } =
        session === undefined ? NO_SESSION : { sessionId: session.id, password: session.password };
      const { sessionTimeoutMs: timeoutMs } = this.settings;
      // A read-only server cannot confirm a read-write session.
      const readOnly = this.settings.readOnly && session?.readOnly !== false;
      return connectFrame({ lastZxid: this.lastZxid, timeoutMs, sessionId, password, readOnly });
    },
    onEstablished: (link, response, sentAt) => this.established(link, response, sentAt),
    onAnswer: (xid, zxid, code, reader) => {
      if (this.state === 'closed') {
        if (xid === CLOSE_XID) this.onSessionClosed?.();
        return;
      }
      // First, because handling the answer may close the connection.
      if (zxid > this.lastZxid) this.lastZxid = zxid;
      const sentAt = this.handler.answers.answer(xid, code, reader);
      this.session?.proveAlive(sentAt);
    },
    onPong: (sentAt) => this.session?.proveAlive(sentAt),
    onEvent: (event) => {
      if (this.state !== 'closed') this.handler.events.onEvent(event);
    },
    onAuth: (code, reader) => {
      if (this.state !== 'closed') this.credentials.answered(code, reader);
    },
    onWatchesSet: (code) => {
      if (this.state !== 'closed') this.handler.events.onWatchesSet(code);
    },
    onDown: (_link, error) => this.down(error),
  };

  private established(link: Link, response: ConnectResponse, sentAt: number): void {
    const { session } = this;
    if (response.timeoutMs <= 0) {
      if (session === undefined) throw new ZooKeeperError('protocol', `${link.name} refused to create a session`);
      this.lose(session, new SessionLostError('session-lost', `session ${session.name} expired, says ${link.name}`));
      return;
    }
    if (session !== undefined && response.sessionId !== session.id) {
      throw new ZooKeeperError('protocol', `${link.name} answered with another session than ${session.name}`);
    }
    const { sessionId: id, password, timeoutMs, readOnly } = response;
    if (readOnly && (session?.readOnly === false || !this.settings.readOnly)) {
      throw new ZooKeeperError('not-read-only', `${link.name} currently only serves reads`);
    }
    if (session?.readOnly === true && !readOnly) {
      const message = `session ${session.name} only served reads; ${link.name} accepts writes`;
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

  /** No server confirmed the session in time. The servers may still have it. */
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

  /** Replaces the connection and session of a read-only server with those of a read-write server. */
  private moveTo(link: Link, response: ConnectResponse, sentAt: number): void {
    const { session, linkOver } = this;
    if (session === undefined) return;
    // `serve` now waits for the end of the new connection.
    this.linkOver = () => undefined;
    const message = `session ${session.name} only served reads; ${link.name} accepts writes and has created another`;
    this.lose(session, new SessionLostError('session-lost', message));
    this.linkOver = linkOver;
    // A listener may have closed the client.
    if (this.stop.signal.aborted) {
      link.close();
      linkOver();
      return;
    }
    this.link = link;
    this.draining = false;
    this.established(link, response, sentAt);
  }

  private dropDrained(link: Link): void {
    if (this.link !== link) return;
    this.detach(new ConnectionLostError('connection-lost', `${link.name} is not in the list of servers any more`));
    this.dropLink();
  }

  private down(error: ZooKeeperError): void {
    this.detach(error);
    if (this.state !== 'closed') {
      if (error.code === 'auth-failed') this.abandon(error);
      else this.problem(error);
    }
    this.dropLink();
  }

  private lose(session: ClientSession, error: SessionLostError): void {
    if (this.session !== session) return;
    this.session = undefined;
    session.confirmed = false;
    // Servers that were restored from a backup refuse clients that have seen newer transactions.
    this.lastZxid = 0n;
    this.detach(error);
    this.state = 'connecting';
    session.end(error);
    this.handler.onLost(session, error);
    // A listener may have closed the client.
    if (!this.stop.signal.aborted) this.handler.onState('connecting');
    this.dropLink();
  }

  /** Reports the loss of the connection, if it had a confirmed session. */
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
