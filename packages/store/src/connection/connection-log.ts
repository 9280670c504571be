/** Logs the state of the connection to ZooKeeper: one line when it is lost, and one when it is restored. */

import type { ZooKeeper } from '@nodepool/zookeeper';
import type { Logger, Clock } from '@nodepool/core';

/** Interval (ms) between reminders of an ongoing outage. */
const REMIND_EVERY_MS = 600_000;

/** Logs events of the client until it is closed. Events that are not warnings are logged at debug level. */
export function logConnection(zooKeeper: ZooKeeper, clock: Clock, log: Logger): void {
  const outages = new OutageLog(clock, log);
  zooKeeper.on('warning', ({ message }) => {
    if (zooKeeper.state === 'connected') log.warn('ZooKeeper connection', { reason: message });
    else outages.failed(message);
  });
  zooKeeper.on('lost', (_session, { message }) => outages.failed(message));
  zooKeeper.on('state', (state) => {
    if (state === 'suspended' || state === 'connecting') outages.begin();
  });
  zooKeeper.on('session', () => outages.end('new'));
  zooKeeper.on('resumed', () => outages.end('the same'));
}

class OutageLog {
  private since: number | undefined;
  private reportedAt: number | undefined;
  /** Reasons logged before the first connection, each distinct one once: it may point to a configuration error. */
  private reasons: Set<string> | undefined = new Set();

  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {
    this.since = clock.monotonic();
  }

  begin(): void {
    this.since ??= this.clock.monotonic();
  }

  failed(reason: string): void {
    const now = this.clock.monotonic();
    this.begin();
    const isNew = this.reasons !== undefined && !this.reasons.has(reason);
    this.reasons?.add(reason);
    if (!isNew && this.reportedAt !== undefined && now - this.reportedAt < REMIND_EVERY_MS) {
      this.log.debug('ZooKeeper connection', { reason });
      return;
    }
    this.reportedAt = now;
    this.log.warn('ZooKeeper cannot be reached; work in progress waits for it', { reason, seconds: this.seconds(now) });
  }

  end(session: 'new' | 'the same'): void {
    const now = this.clock.monotonic();
    if (this.reasons !== undefined) this.log.info('ZooKeeper is connected');
    else if (this.reportedAt !== undefined) {
      this.log.info('ZooKeeper is connected again', { session, seconds: this.seconds(now) });
    }
    this.reasons = undefined;
    this.since = undefined;
    this.reportedAt = undefined;
  }

  private seconds(now: number): number {
    return Math.round((now - (this.since ?? now)) / 1000);
  }
}
