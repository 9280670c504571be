/** Sends metrics to statsd by UDP, in batches. */

import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import type { Clock, Timer } from '@nodepool/core';

/** Sends metrics to statsd. */
export interface StatsdSender {
  increment(key: string, amount: number): void;
  timing(key: string, milliseconds: number): void;
  gauge(key: string, value: number): void;
  /** Resolves once all metrics are sent. */
  close(): Promise<void>;
}

export interface StatsdAddress {
  readonly host: string;
  readonly port: number;
}

const DEFAULT_HOST = 'localhost';
const DEFAULT_PORT = 8125;
/** `bytes`: a datagram's size that any network can carry. `waitMs`: the time that a batch waits for further lines. */
const BATCH = { bytes: 1400, waitMs: 1000 } as const;
/** Lifetime (ms) of a resolved host name. */
const DNS_LIFE_MS = 60_000;

/** `STATSD_HOST` or `STATSD_PORT` of an environment is not valid. */
export class StatsdAddressError extends Error {
  readonly code = 'statsd-address';
  constructor(message: string) {
    super(message);
    this.name = 'StatsdAddressError';
  }
}

/** Returns the address in `STATSD_HOST` and `STATSD_PORT`; undefined if both are unset. Throws `StatsdAddressError`. */
export function statsdAddress(env: Readonly<Record<string, string | undefined>>): StatsdAddress | undefined {
  const host = env['STATSD_HOST'] ?? '';
  const port = env['STATSD_PORT'] ?? '';
  if (host === '' && port === '') return undefined;
  const number = port === '' ? DEFAULT_PORT : Number(port);
  if (!Number.isInteger(number) || number < 1 || number > 65_535) {
    throw new StatsdAddressError(
      `the environment variable STATSD_PORT is ${JSON.stringify(port)}; set it to a port, 1 to 65535, or unset it`,
    );
  }
  return { host: host === '' ? DEFAULT_HOST : host, port: number };
}

/** Opens a sender. `onError` receives failures to resolve the host name and to send; an unserved port is no error. */
export function openStatsd(address: StatsdAddress, clock: Clock, onError: (error: Error) => void): StatsdSender {
  const sender = new BatchSender(address, clock, onError);
  return {
    increment: (key, amount) => sender.add(`${key}:${amount}|c`),
    timing: (key, milliseconds) => sender.add(`${key}:${milliseconds}|ms`),
    gauge: (key, value) => sender.add(`${key}:${value}|g`),
    close: () => sender.close(),
  };
}

class BatchSender {
  private readonly socket: Socket;
  private resolved: { readonly address: string; readonly until: number } | undefined;
  private batch = '';
  private timer: Timer | undefined;
  private sent: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly address: StatsdAddress,
    private readonly clock: Clock,
    private readonly onError: (error: Error) => void,
  ) {
    this.socket = createSocket('udp4');
    this.socket.on('error', onError);
    this.socket.unref();
  }

  add(line: string): void {
    if (this.batch !== '' && Buffer.byteLength(this.batch) + 1 + Buffer.byteLength(line) > BATCH.bytes) this.flush();
    this.batch += this.batch === '' ? line : `\n${line}`;
    this.timer ??= this.clock.schedule(BATCH.waitMs, () => this.flush(), { background: true });
  }

  async close(): Promise<void> {
    this.flush();
    await this.sent;
    await new Promise<void>((resolve) => this.socket.close(() => resolve()));
  }

  private flush(): void {
    this.timer?.cancel();
    this.timer = undefined;
    const { batch } = this;
    this.batch = '';
    if (batch !== '') this.sent = Promise.all([this.sent, this.send(batch).catch(this.onError)]);
  }

  private async send(batch: string): Promise<void> {
    const host = await this.resolveHost();
    await new Promise<void>((resolve, reject) => {
      this.socket.send(batch, this.address.port, host, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  private async resolveHost(): Promise<string> {
    const now = this.clock.monotonic();
    if (this.resolved === undefined || this.resolved.until <= now) {
      const { address } = await lookup(this.address.host, { family: 4 });
      this.resolved = { address, until: now + DNS_LIFE_MS };
    }
    return this.resolved.address;
  }
}
