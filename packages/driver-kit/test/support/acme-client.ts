/** The acme cloud's calls for the driver: with deadlines, reported to the metrics, and with errors of core. */

import {
  AbortedError,
  AuthError,
  CapacityError,
  ConfigurationError,
  ConflictError,
  NotFoundError,
  QuotaError,
  ThrottledError,
  TimeoutError,
  TimerQueue,
  TransientError,
  toDriverError,
  withDeadline,
  type Call,
  type DriverError,
  type ProviderContext,
} from '@nodepool/core';
import { ACME_HOST, AcmeError, type AcmeCloud, type ListedServer, type Tags } from './acme-cloud.js';

export interface AcmeClient {
  describe(call: Call): Promise<{ readonly zones: readonly string[]; readonly limit: number }>;
  /** Default of `size`: `s`. */
  create(tags: Tags, zone: string, image: string, call: Call, size?: string): Promise<string>;
  tag(id: string, tags: Tags, call: Call): Promise<void>;
  remove(id: string, call: Call): Promise<void>;
  page(from: number, call: Call): Promise<{ readonly items: readonly ListedServer[]; readonly next: number | null }>;
  createImage(name: string, tags: Tags, sha256: string | null, call: Call): Promise<string>;
  upload(id: string, data: AsyncIterable<Uint8Array>, call: Call): Promise<void>;
  removeImage(id: string, call: Call): Promise<void>;
  images(call: Call): ReturnType<AcmeCloud['listImages']>;
}

/** Converts an error of the cloud to one of core. */
export type Explain = (error: AcmeError) => DriverError;

export const explain: Explain = ({ kind, message, retryAfterMs }) => {
  switch (kind) {
    case 'missing':
    case 'not-found':
      return new NotFoundError(message);
    case 'conflict':
      return new ConflictError(message);
    case 'throttle':
      return new ThrottledError(message, { retryAfterMs });
    case 'auth':
      return new AuthError(message);
    case 'quota':
      return new QuotaError(message);
    case 'capacity':
      return new CapacityError(message);
    case 'invalid':
      return new ConfigurationError(message);
    case 'echo':
      return new TransientError(`acme: a proxy answered (answer of ${ACME_HOST}: 502)`);
    case 'redirect-away':
      return new TransientError(`acme: ${ACME_HOST} redirects to another host: ${message}`);
    case 'endless':
      return new TransientError('acme: the answer is too long', { outcome: 'not-applied' });
    default:
      return new TransientError(message);
  }
};

export function acmeClient(cloud: AcmeCloud, { clock, onApiCall }: ProviderContext, translate: Explain): AcmeClient {
  const timers = new TimerQueue(clock);
  const run = async <T>(operation: string, call: Call, ask: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const startedAt = clock.monotonic();
    let status: string | number = 200;
    const limits = {
      ...{ timers, signal: call.signal, deadline: call.deadline },
      onDeadline: () => new TimeoutError(`${operation} had no answer in time`),
      onAbort: (cause: Error) => new AbortedError(`${operation} was aborted`, { cause }),
    };
    try {
      return await withDeadline(limits, async (signal) => {
        try {
          return await ask(signal);
        } catch (error) {
          throw error instanceof AcmeError ? translate(error) : error;
        }
      });
    } catch (error) {
      status = toDriverError(error).code;
      throw error;
    } finally {
      onApiCall({ service: 'acme', method: 'CALL', operation, durationMs: clock.monotonic() - startedAt, status });
    }
  };
  return {
    describe: (call) => run('describe', call, (signal) => cloud.describe(signal)),
    create: (tags, zone, image, call, size = 's') =>
      run('create', call, (signal) => cloud.create(tags, zone, image, size, signal)),
    tag: (id, tags, call) => run('tag', call, (signal) => cloud.tag(id, tags, signal)),
    remove: (id, call) => run('remove', call, (signal) => cloud.remove(id, signal)),
    page: (from, call) => run('list', call, (signal) => cloud.list(from, signal)),
    createImage: (name, tags, sha256, call) =>
      run('create image', call, (signal) => cloud.createImage(name, tags, sha256, signal)),
    upload: (id, data, call) => run('upload', call, (signal) => cloud.upload(id, data, signal)),
    removeImage: (id, call) => run('remove image', call, (signal) => cloud.removeImage(id, signal)),
    images: (call) => run('list images', call, (signal) => cloud.listImages(signal)),
  };
}
