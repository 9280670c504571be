/**
 * Keeps a session with the ensemble: finds a server, resumes the session there, makes a new one when it is lost, until
 * it is closed.
 */

import type { ConnectionState, WatchEvent } from '../api.js';
import { sleep } from '../clock.js';
import { ClosedError, ConnectionLostError, SessionLostError, ZooKeeperError } from '../errors.js';
import type { JuteReader } from './jute-reader.js';
import { Link, type LinkHandler } from './link.js';
import { authFrame, closeSessionFrame, connectFrame } from './operations.js';
import type { Settings } from './options.js';
import { NO_SESSION, type ConnectResponse } from './protocol.js';
import { ServerList, type Endpoint, type ServerAddress } from './server-list.js';
import { ClientSession } from './session.js';

/** What the keeper tells the client. */
export interface KeeperHandler {
  /** There is a connection with a confirmed session. `fresh`: the session is a new one. */
  onUp(link: Link, session: ClientSession, fresh: boolean): void;
  /** The connection is gone. */
  onDown(error: ZooKeeperError): void;
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

export class SessionKeeper {
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
    private readonly handler: KeeperHandler,
  ) {
    this.servers = new ServerList(settings.servers, settings.random);
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

  /** Ends the session at the server if it can be reached. Resolves when nothing of it is left. */
  async close(): Promise<void> {
    if (this.state !== 'closed') {
      const { link, up } = this;
      const error = new ClosedError('closed', 'the ZooKeeper client was closed');
      // The connection stays for the farewell, but nobody else uses it any more.
      this.up = false;
      this.shutDown(error);
      if (link !== undefined && up) await this.sayFarewell(link);
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
    const { session } = this;
    this.session = undefined;
    this.state = 'closed';
    session?.end(
      new SessionLostError('session-lost', `session ${session.name} ended: ${error.message}`, { cause: error }),
    );
    this.handler.onClosed(error);
    this.handler.onState('closed');
  }

  /** Tells the server that the session is over, and waits for its answer, not for longer than for any other server's. */
  private async sayFarewell(link: Link): Promise<void> {
    const answered = new Promise<void>((resolve) => {
      this.onSessionClosed = resolve;
    });
    link.send(closeSessionFrame());
    const timer = this.settings.clock.schedule(this.settings.connectTimeoutMs, () => this.onSessionClosed?.());
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
    const name = `${server.host}:${server.port}`;
    const { connectTimeoutMs, clock } = this.settings;
    const enough = new AbortController();
    const stop = AbortSignal.any([enough.signal, this.stop.signal]);
    const tooLate = sleep(clock, connectTimeoutMs, stop).then(() => {
      throw new Error(`no answer within ${Math.round(connectTimeoutMs)} ms`);
    });
    try {
      return await Promise.race([this.servers.resolve(server), tooLate]);
    } catch (error) {
      if (this.stop.signal.aborted) return [];
      const reason = error instanceof Error ? error.message : String(error);
      this.problem(
        new ConnectionLostError('connection-lost', `${name}: its name cannot be resolved: ${reason}`, { cause: error }),
      );
      return [];
    } finally {
      enough.abort();
      tooLate.catch(() => undefined);
    }
  }

  /** One connection, from its beginning to its end. True when the next one deserves no delay. */
  private async serve(endpoint: Endpoint): Promise<boolean> {
    const { tls, maxAnswerBytes, connectTimeoutMs, clock, openWire } = this.settings;
    const connectsBefore = this.connects;
    const startedAt = clock.monotonic();
    const over = new Promise<void>((resolve) => {
      this.linkOver = resolve;
    });
    try {
      this.link = new Link({ endpoint, tls, maxAnswerBytes, connectTimeoutMs, clock, openWire }, this.linkHandler);
    } catch (error) {
      // The files of a certificate may be in the middle of being renewed.
      this.problem(
        error instanceof ZooKeeperError
          ? error
          : new ZooKeeperError('invalid-argument', String(error), { cause: error }),
      );
      return false;
    }
    const hadSession = this.session !== undefined;
    await over;
    const expired = hadSession && this.session === undefined;
    return expired || (this.connects > connectsBefore && clock.monotonic() - startedAt >= STABLE_AFTER_MS);
  }

  private readonly linkHandler: LinkHandler = {
    connectRequest: () => {
      const { session } = this;
      const { sessionId, password } =
        session === undefined ? NO_SESSION : { sessionId: session.id, password: session.password };
      const { sessionTimeoutMs: timeoutMs } = this.settings;
      return connectFrame({ lastZxid: this.lastZxid, timeoutMs, sessionId, password });
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
    session?.resume(response.timeoutMs, sentAt);
    const { sessionId: id, password, timeoutMs } = response;
    const present =
      session ??
      new ClientSession({ id, password, timeoutMs, provenAt: sentAt }, this.settings.clock, (expired, error) =>
        this.lose(expired, error),
      );
    this.session = present;
    present.confirmed = true;
    this.up = true;
    this.connects++;
    this.lastProblem = undefined;
    link.startHeartbeat(response.timeoutMs);
    for (const { scheme, auth } of this.settings.auth) link.send(authFrame(scheme, auth));
    this.state = 'connected';
    this.handler.onUp(link, present, session === undefined);
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
