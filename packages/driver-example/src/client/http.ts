/** The client of an example cloud in a separate process (`nodepool-example-cloud`). */

import type { ApiClient, Attempted, Call, DriverError, FetchRequest } from '@nodepool/core';
import { ErrorStatus, fetchAnswer, isError, networkCauseOf, reasonOf, TransientError } from '@nodepool/core';
import type { Readable } from 'node:stream';
import { apiClient, OPERATIONS, requestOf, type CallContext, type ExampleCloudApi, type Operation } from './client.js';
import type { CloudDescription, CloudImage, CloudInstance, ImageSpec, InstanceSpec, Page } from '../cloud/types.js';
import { driverErrorOf, foreignError } from '../errors.js';
import { readConsole, readDescription, readError, readImage, readInstance, readPage, WireError } from './wire.js';

/** Maximum size of a response; a longer one is rejected to limit memory use. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;

type Payload = Pick<FetchRequest, 'json' | 'data' | 'headers'>;

export class HttpClient implements ExampleCloudApi {
  private readonly api: ApiClient;
  private readonly base: string;

  /** `endpoint` is a URL such as `http://127.0.0.1:8480`. */
  constructor(endpoint: string, context: CallContext) {
    this.api = apiClient(context, (error, attempted) => this.errorOf(error, attempted));
    this.base = `${endpoint.replace(/\/+$/, '')}/v1`;
  }

  describe(call: Call): Promise<CloudDescription> {
    return this.request(OPERATIONS.describe, call, '/cloud', readDescription);
  }

  createInstance(spec: InstanceSpec, call: Call): Promise<CloudInstance> {
    return this.request(OPERATIONS.createInstance, call, '/instances', readInstance, { json: spec });
  }

  deleteInstance(id: string, call: Call): Promise<CloudInstance> {
    return this.request(OPERATIONS.deleteInstance, call, `/instances/${encodeURIComponent(id)}`, readInstance);
  }

  listInstances(marker: string | null, call: Call): Promise<Page<CloudInstance>> {
    return this.request(OPERATIONS.listInstances, call, `/instances${from(marker)}`, (value) =>
      readPage(value, readInstance),
    );
  }

  consoleOf(id: string, call: Call): Promise<string> {
    return this.request(OPERATIONS.consoleOf, call, `/instances/${encodeURIComponent(id)}/console`, readConsole);
  }

  createImage(spec: ImageSpec, call: Call): Promise<CloudImage> {
    return this.request(OPERATIONS.createImage, call, '/images', readImage, { json: spec });
  }

  putImageData(id: string, data: () => Readable, call: Call): Promise<CloudImage> {
    const payload: Payload = { headers: { 'content-type': 'application/octet-stream' }, data };
    return this.request(OPERATIONS.putImageData, call, `/images/${encodeURIComponent(id)}/data`, readImage, payload);
  }

  async deleteImage(id: string, call: Call): Promise<void> {
    await this.request(OPERATIONS.deleteImage, call, `/images/${encodeURIComponent(id)}`, () => null);
  }

  listImages(marker: string | null, call: Call): Promise<Page<CloudImage>> {
    return this.request(OPERATIONS.listImages, call, `/images${from(marker)}`, (value) => readPage(value, readImage));
  }

  private request<T>(
    kind: Operation,
    call: Call,
    path: string,
    read: (value: unknown) => T,
    payload: Payload = {},
  ): Promise<T> {
    const { method } = kind;
    const request: FetchRequest = { url: this.base + path, method, maxBytes: MAX_ANSWER_BYTES, ...payload };
    return this.api.send(requestOf(kind), call, async (attempt) => read((await fetchAnswer(request, attempt)).json));
  }

  private errorOf(error: unknown, attempted: Attempted): DriverError {
    const { operation } = attempted;
    if (error instanceof ErrorStatus) {
      const { status, text, json } = error.answer;
      const said = readError(json);
      return said === undefined ? foreignError(attempted, status, text) : driverErrorOf(attempted, said);
    }
    if (error instanceof WireError) {
      const message = `${operation}: ${this.base} returned an unreadable answer: ${error.message}`;
      return new TransientError(message, { cause: error });
    }
    const network = networkCauseOf(error);
    if (network?.outcome === 'not-applied') {
      const message = `${operation}: cannot connect to ${this.base} (${network.message}); is nodepool-example-cloud running there?`;
      return new TransientError(message, { cause: error, outcome: 'not-applied' });
    }
    const message = `${operation}: the connection to ${this.base} broke before the answer came (${network?.message ?? causeOf(error)})`;
    return new TransientError(message, { cause: error, outcome: 'unknown' });
  }
}

/** Returns the reason of an error of `fetch`, whose own message is always `fetch failed`. */
function causeOf(error: unknown): string {
  return isError(error) && isError(error.cause) ? causeOf(error.cause) : reasonOf(error);
}

function from(marker: string | null): string {
  return marker === null ? '' : `?marker=${encodeURIComponent(marker)}`;
}
