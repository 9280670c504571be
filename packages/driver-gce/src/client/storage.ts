/**
 * The bucket for image uploads. Uploads are resumable ones of the JSON API
 * (https://cloud.google.com/storage/docs/performing-resumable-uploads), because the compressed size is unknown in
 * advance and lost data must be sent again.
 */

import type { gaxios as Gaxios } from 'google-auth-library';
import type { Call, Clock, HttpExchange, JsonObject, RandomSource, RetryOptions } from '@nodepool/core';
import { numberAt, retryPassing, stringAt, textsAt, TransientError, waitForRetry } from '@nodepool/core';
import { answerOf, expectNoContent, listAt } from './answers.js';
import { callOptions, redirected, type CallOptions, type Google } from './google.js';

/** Chunk size, a multiple of 256 KiB as the protocol requires. One chunk is kept in memory for retries. */
export const CHUNK_BYTES = 8 * 1024 * 1024;
const ATTEMPTS = 5;
const CANCEL_TIMEOUT_MS = 10_000;
const CALL_TIMEOUT_MS = 120_000;
const MAX_PAGES = 1000;
/** Name prefix of objects that Nodepool creates. */
const PREFIX = 'nodepool/';

export interface StorageOptions {
  readonly google: Google;
  readonly bucket: string;
  readonly clock: Clock;
  readonly random: RandomSource;
}

export interface StoredObject {
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
}

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly data: unknown;
}

export class Storage {
  constructor(private readonly options: StorageOptions) {}

  /** Returns the URL from which Compute Engine reads an object. */
  urlOf(name: string): string {
    return `https://storage.googleapis.com/${this.options.bucket}/${name}`;
  }

  nameOf(file: string): string {
    return `${PREFIX}${file}`;
  }

  /** Uploads the concatenated pieces and resolves with the object's MD5 in base64. */
  async upload(object: StoredObject, pieces: AsyncIterable<Uint8Array>, call: Call): Promise<string | undefined> {
    const session = await this.begin(object, call);
    try {
      return await this.send(session, pieces, call);
    } catch (error) {
      await this.cancel(session, call);
      throw error;
    }
  }

  async deleteObject(object: string, call: Call): Promise<void> {
    const { google, bucket } = this.options;
    const { data } = await this.call<{ readonly data: unknown }>('DELETE', 'objects.delete', call, (options) =>
      google.storage.objects.delete({ bucket, object }, options),
    );
    expectNoContent(data, 'storage.objects.delete');
  }

  async listObjects(call: Call): Promise<readonly StoredObject[]> {
    const { google, bucket } = this.options;
    const found: StoredObject[] = [];
    let pageToken: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const token = pageToken === undefined ? {} : { pageToken };
      const { data } = await this.call('GET', 'objects.list', call, (options) =>
        google.storage.objects.list({ bucket, prefix: PREFIX, ...token }, options),
      );
      const answer = answerOf('storage#objects', data, 'storage.objects.list', 'not-applied');
      for (const item of listAt(answer, 'items')) {
        found.push({ name: stringAt(item, 'name') ?? '', metadata: textsAt(item, 'metadata') });
      }
      pageToken = stringAt(answer, 'nextPageToken');
      if (pageToken === undefined) return found;
    }
    throw new TransientError(`the list of bucket ${bucket} does not end`);
  }

  private async begin({ name, metadata }: StoredObject, call: Call): Promise<string> {
    const { google, bucket } = this.options;
    const url = `${google.storageEndpoint}/upload/storage/v1/b/${encodeURIComponent(bucket)}/o?uploadType=resumable&name=${encodeURIComponent(name)}`;
    const headers = { 'content-type': 'application/json', 'x-upload-content-type': 'application/gzip' };
    const { headers: answered } = await retryPassing(this.retries(call), () =>
      this.exchange('POST', 'objects.insert', url, headers, JSON.stringify({ name, metadata }), call),
    );
    const session = answered.get('location');
    if (session !== null) return session;
    throw new TransientError(`objects.insert: bucket ${bucket} has started an upload without returning its URL`);
  }

  private async send(session: string, pieces: AsyncIterable<Uint8Array>, call: Call): Promise<string | undefined> {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let [sent, filled] = [0, 0];
    for await (const piece of pieces) {
      for (let taken = 0; taken < piece.byteLength;) {
        // A full chunk is sent only when more data follows, because the last chunk is sent differently.
        if (filled === CHUNK_BYTES) {
          await this.sendChunk(session, chunk, sent, undefined, call);
          sent += filled;
          filled = 0;
        }
        const part = piece.subarray(taken, taken + CHUNK_BYTES - filled);
        chunk.set(part, filled);
        filled += part.byteLength;
        taken += part.byteLength;
      }
    }
    const done = await this.sendChunk(session, chunk.subarray(0, filled), sent, sent + filled, call);
    return done === undefined ? undefined : stringAt(done, 'md5Hash');
  }

  /** Sends a chunk and repeats the part that did not arrive. `total` marks the last, whose call returns the object. */
  private async sendChunk(
    session: string,
    chunk: Uint8Array,
    offset: number,
    total: number | undefined,
    call: Call,
  ): Promise<JsonObject | undefined> {
    const end = offset + chunk.byteLength;
    const all = total === undefined ? '*' : String(total);
    let from = offset;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.offer(session, chunk.subarray(from - offset), from, all, attempt, call);
      if (answer.status !== 308) return answerOf('storage#object', answer.data, 'storage.objects.insert', 'unknown');
      const received = receivedIn(answer);
      if (received < offset || received > end || (received <= from && attempt >= ATTEMPTS)) {
        throw new TransientError(`the bucket has ${received} bytes of an upload that is at ${from}`);
      }
      from = received;
      if (total === undefined && from >= end) return undefined;
    }
  }

  /** Sends the bytes. After a temporary failure, queries how many bytes the bucket has received. */
  private async offer(
    session: string,
    body: Uint8Array,
    from: number,
    total: string,
    attempt: number,
    call: Call,
  ): Promise<Answered> {
    const nothing = `bytes */${total}`;
    const range = body.byteLength === 0 ? nothing : `bytes ${from}-${from + body.byteLength - 1}/${total}`;
    try {
      return await this.exchange('PUT', 'objects.insert', session, { 'content-range': range }, body, call);
    } catch (error) {
      await waitForRetry(this.retries(call), error, attempt);
      return await retryPassing(this.retries(call), () =>
        this.exchange('PUT', 'objects.insert', session, { 'content-range': nothing }, '', call),
      );
    }
  }

  private async cancel(session: string, call: Call): Promise<void> {
    const { clock } = this.options;
    const own: Call = {
      ...call,
      signal: new AbortController().signal,
      deadline: clock.monotonic() + CANCEL_TIMEOUT_MS,
    };
    try {
      await this.exchange('DELETE', 'objects.insert', session, {}, '', own);
    } catch (error) {
      call.log.info('A broken upload was not cancelled; it ends by itself within a week', { error });
    }
  }

  private retries({ signal }: Call): RetryOptions {
    const { clock, random } = this.options;
    return { clock, random, signal, attempts: ATTEMPTS };
  }

  /** Makes one call of the upload protocol, which Google's storage library lacks. Status 308 asks for more data. */
  private async exchange(
    method: 'POST' | 'PUT' | 'DELETE',
    operation: string,
    url: string,
    headers: Readonly<Record<string, string>>,
    data: string | Uint8Array,
    call: Call,
  ): Promise<Answered> {
    const { gaxios } = this.options.google;
    return this.call(method, operation, call, ({ headers: own, adapter: _other, ...options }, http) => {
      for (const [name, value] of Object.entries(headers)) own.set(name, value);
      return gaxios.request<unknown>({
        ...options,
        ...{ method, url, headers: own, data },
        adapter: (prepared, send) => redirected(http, prepared, send),
        validateStatus: (status) => status < 300 || status === 308 || status === 499,
        errorRedactor: withoutSecrets,
      });
    });
  }

  /** Makes a call with an abort signal, a deadline and metrics. */
  private call<T>(
    method: string,
    operation: string,
    call: Call,
    work: (options: CallOptions, http: HttpExchange) => Promise<T>,
  ): Promise<T> {
    const request = {
      service: 'storage',
      method,
      operation: operation.replace('.', '-'),
      name: `storage.${operation}`,
    };
    const limits = { timeoutMs: CALL_TIMEOUT_MS, lane: 'none' } as const;
    return this.options.google.api.send({ ...request, ...limits }, call, (attempt) =>
      work(callOptions(attempt), attempt.http),
    );
  }
}

/** Returns the number of received bytes from `Range: bytes=0-<last>`, which is absent if there are none. */
function receivedIn({ headers }: Answered): number {
  const [, last] = /bytes=0-(\d+)/.exec(headers.get('range') ?? '') ?? [];
  return last === undefined ? 0 : (numberAt({ last }, 'last') ?? 0) + 1;
}

interface FailedCall {
  config?: Gaxios.GaxiosOptionsPrepared;
  response?: Gaxios.GaxiosResponse;
}

/** Replaces the redactor of gaxios, which calls a function for each byte of a chunk: that takes seconds. */
function withoutSecrets<T extends FailedCall>(failure: T): T {
  for (const config of [failure.config, failure.response?.config]) {
    config?.headers.delete('authorization');
    delete config?.data;
    delete config?.body;
  }
  return failure;
}
