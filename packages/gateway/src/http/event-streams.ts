/** Streams of server-sent events: each follows one lease. */

import type { ServerResponse } from 'node:http';
import type { Clock, Metrics, Timer } from '@nodepool/core';
import type { LeaseDocument } from '@nodepool/requestor/http';
import { STREAMS } from '../metrics.js';
import { ProblemError } from './problems.js';

/** Interval of comments, which show proxies and clients that the stream is alive, in milliseconds. */
const HEARTBEAT_MS = 10_000;
/** Unsent bytes of a client that reads too slowly; its stream is ended, and it can connect again. */
const MAX_UNSENT_BYTES = 1_000_000;
/** Longest duration of a stream, in milliseconds. A client connects again, and its token is checked again. */
const LONGEST_MS = 600_000;
/** Delay of an event, in milliseconds, so that several changes at once are one event. */
const COALESCE_MS = 20;

export interface StreamLimits {
  readonly streams: number;
  readonly streamsPerToken: number;
}

export interface FollowedLease {
  readonly id: string;
  /** Returns the lease now; undefined if it does not exist any more. */
  readonly read: () => LeaseDocument | undefined;
}

interface Stream {
  readonly subject: string;
  readonly lease: FollowedLease;
  readonly response: ServerResponse;
  last: string;
  sent: number;
  pending: Timer | undefined;
  heartbeat: Timer | undefined;
  end: Timer | undefined;
}

export class EventStreams {
  private readonly streams = new Map<string, Set<Stream>>();
  private readonly perSubject = new Map<string, number>();
  private count = 0;

  constructor(
    private readonly options: {
      readonly clock: Clock;
      readonly metrics: Metrics;
      readonly limits: () => StreamLimits;
    },
  ) {
    options.metrics.onCollect(() => options.metrics.set(STREAMS, {}, this.count));
  }

  /** Throws a problem `streams` if the caller cannot open another stream. */
  checkLimits(subject: string): void {
    const { streams, streamsPerToken } = this.options.limits();
    const own = this.perSubject.get(subject) ?? 0;
    if (this.count < streams && own < streamsPerToken) return;
    const limit =
      own >= streamsPerToken ? `the token has ${own} open streams` : `the gateway has ${this.count} open streams`;
    throw new ProblemError('streams', `${limit}; close some, or ask for the lease from time to time`, {
      retryAfter: 10,
    });
  }

  /** Sends events of the lease on the response until the lease or the connection ends. */
  open(subject: string, lease: FollowedLease, response: ServerResponse): void {
    const stream: Stream = {
      subject,
      lease,
      response,
      last: '',
      sent: 0,
      pending: undefined,
      heartbeat: undefined,
      end: undefined,
    };
    this.count += 1;
    this.perSubject.set(subject, (this.perSubject.get(subject) ?? 0) + 1);
    this.streams.set(lease.id, (this.streams.get(lease.id) ?? new Set()).add(stream));
    response.on('close', () => this.closed(stream));
    // A connection that breaks is closed, too.
    response.on('error', () => undefined);
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    response.write('retry: 1000\n\n');
    this.beat(stream);
    stream.end = this.options.clock.schedule(LONGEST_MS, () => response.end(), { background: true });
    this.send(stream);
  }

  /** Sends the lease on its streams, if it looks different. */
  changed(leaseId: string): void {
    for (const stream of this.streams.get(leaseId) ?? []) {
      stream.pending ??= this.options.clock.schedule(COALESCE_MS, () => {
        stream.pending = undefined;
        this.send(stream);
      });
    }
  }

  /** Looks at all followed leases, whose reasons may have changed. */
  allChanged(): void {
    for (const id of this.streams.keys()) this.changed(id);
  }

  /** Ends all streams; clients connect to another gateway. */
  close(): void {
    for (const streams of [...this.streams.values()]) for (const { response } of [...streams]) response.end();
  }

  private send(stream: Stream): void {
    const { lease, response } = stream;
    if (response.writableEnded || response.destroyed) return;
    const document = lease.read();
    if (document === undefined) {
      response.end();
      return;
    }
    const data = JSON.stringify(document);
    if (data === stream.last) return;
    stream.last = data;
    stream.sent += 1;
    response.write(`id: ${stream.sent}\nevent: lease\ndata: ${data}\n\n`);
    if (document.state === 'ended') response.end();
    else if (response.writableLength > MAX_UNSENT_BYTES) response.destroy();
  }

  private beat(stream: Stream): void {
    stream.heartbeat = this.options.clock.schedule(
      HEARTBEAT_MS,
      () => {
        stream.response.write(': alive\n\n');
        this.beat(stream);
      },
      { background: true },
    );
  }

  private closed(stream: Stream): void {
    stream.pending?.cancel();
    stream.heartbeat?.cancel();
    stream.end?.cancel();
    const { subject, lease } = stream;
    const streams = this.streams.get(lease.id);
    if (streams?.delete(stream) !== true) return;
    if (streams.size === 0) this.streams.delete(lease.id);
    this.count -= 1;
    const left = (this.perSubject.get(subject) ?? 1) - 1;
    if (left === 0) this.perSubject.delete(subject);
    else this.perSubject.set(subject, left);
  }
}
