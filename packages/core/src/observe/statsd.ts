/** Sends metrics to statsd by UDP, in batches. */

import { createRequire } from 'node:module';
import type * as HotShots from 'hot-shots';
import type { StatsdSender } from './metrics.js';

const load = createRequire(__filename);

/** Where statsd listens. */
export interface StatsdAddress {
  readonly host: string;
  readonly port: number;
}

const DEFAULT_HOST = 'localhost';
const DEFAULT_PORT = 8125;
/** What fits into one datagram on any network, bytes; how long a batch waits to be filled, milliseconds. */
const BATCH = { bytes: 1400, waitMs: 1000 } as const;
/** A host name is not looked up for every datagram. */
const DNS_LIFE_MS = 60_000;

/** `STATSD_HOST` and `STATSD_PORT` of an environment is wrong. */
export class StatsdAddressError extends Error {
  readonly code = 'statsd-address';
  constructor(message: string) {
    super(message);
    this.name = 'StatsdAddressError';
  }
}

/** From `STATSD_HOST` and `STATSD_PORT`; undefined when neither is set. Throws `StatsdAddressError`. */
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

/** A sender; nothing listening there is no error. `onError`: a host name that does not resolve, a full buffer. */
export function openStatsd({ host, port }: StatsdAddress, onError: (error: Error) => void): StatsdSender {
  // Loaded by programs that send, and by no other.
  const { StatsD } = load('hot-shots') as typeof HotShots;
  const client = new StatsD({
    host,
    port,
    protocol: 'udp',
    maxBufferSize: BATCH.bytes,
    bufferFlushInterval: BATCH.waitMs,
    cacheDns: true,
    cacheDnsTtl: DNS_LIFE_MS,
    includeDataDogTags: false,
    originDetection: false,
    errorHandler: onError,
  });
  return {
    increment: (key, amount) => client.increment(key, amount),
    timing: (key, milliseconds) => client.timing(key, milliseconds),
    gauge: (key, value) => client.gauge(key, value),
    close: () =>
      new Promise((resolve) => {
        client.close((error?: unknown) => {
          if (error instanceof Error) onError(error);
          resolve();
        });
      }),
  };
}
