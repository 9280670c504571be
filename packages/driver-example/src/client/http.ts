/** The client of an example cloud in a separate process (`nodepool-example-cloud`). */

import {
  answerText,
  explained,
  HttpExchange,
  isDriverError,
  isError,
  networkCauseOf,
  reasonOf,
  TransientError,
  type Call,
} from '@nodepool/core';
import { Readable } from 'node:stream';
import { Caller, nameOf, OPERATIONS, type CallContext, type ExampleCloudApi, type Operation } from './client.js';
import {
  CloudError,
  type CloudDescription,
  type CloudImage,
  type CloudInstance,
  type ImageSpec,
  type InstanceSpec,
  type Page,
} from '../cloud/types.js';
import { driverErrorOfStatus } from '../errors.js';
import { readConsole, readDescription, readError, readImage, readInstance, readPage, WireError } from './wire.js';

/** Maximum size of a response; a longer one is rejected to limit memory use. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;

interface Payload {
  readonly type: 'application/json' | 'application/octet-stream';
  readonly body: string | (() => Readable);
}

export class HttpClient implements ExampleCloudApi {
  private readonly caller: Caller;
  private readonly base: string;

  /** `endpoint` is a URL such as `http://127.0.0.1:8480`. */
  constructor(
    endpoint: string,
    private readonly context: CallContext,
  ) {
    const host = URL.canParse(endpoint) ? new URL(endpoint).host : undefined;
    this.caller = new Caller({ ...context, onApiCall: (made) => context.onApiCall({ ...made, host }) });
    this.base = `${endpoint.replace(/\/+$/, '')}/v1`;
  }

  describe(call: Call): Promise<CloudDescription> {
    return this.request(OPERATIONS.describe, call, '/cloud', readDescription);
  }

  createInstance(spec: InstanceSpec, call: Call): Promise<CloudInstance> {
    return this.request(OPERATIONS.createInstance, call, '/instances', readInstance, json(spec));
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
    return this.request(OPERATIONS.createImage, call, '/images', readImage, json(spec));
  }

  putImageData(id: string, data: () => Readable, call: Call): Promise<CloudImage> {
    const payload: Payload = { type: 'application/octet-stream', body: data };
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
    payload?: Payload,
  ): Promise<T> {
    return this.caller.run(kind, call, () =>
      this.caller.bounded(kind, call, async (signal) => {
        const http = new HttpExchange(nameOf(kind));
        try {
          return await this.exchange(kind, path, read, payload, signal, http);
        } catch (error) {
          const failure = http.refusal ?? this.explain(kind, error);
          throw isDriverError(failure) ? explained(failure, http) : failure;
        }
      }),
    );
  }

  private async exchange<T>(
    kind: Operation,
    path: string,
    read: (value: unknown) => T,
    payload: Payload | undefined,
    signal: AbortSignal,
    http: HttpExchange,
  ): Promise<T> {
    const { method } = kind;
    const response = await http.send(this.base + path, { method }, async (url) => {
      const answer = await fetch(url, { method, signal, redirect: 'manual', ...bodyOf(payload) });
      if (answer.status >= 300 && answer.status < 400) await answer.body?.cancel();
      return answer;
    });
    const text = await answerText(response.body, MAX_ANSWER_BYTES);
    if (response.ok) return read(JSON.parse(text));
    const retryAfterMs = http.retryAfterMs(this.context.clock.now());
    throw readError(parsed(text)) ?? driverErrorOfStatus(nameOf(kind), response.status, retryAfterMs);
  }

  /** Converts errors of the connection and of the response format. Returns errors of the cloud itself unchanged. */
  private explain(kind: Operation, error: unknown): unknown {
    if (isDriverError(error) || error instanceof CloudError) return error;
    if (error instanceof SyntaxError || error instanceof WireError) {
      return new TransientError(`${nameOf(kind)}: ${this.base} returned an unreadable answer: ${error.message}`, {
        cause: error,
      });
    }
    const network = networkCauseOf(error);
    if (network?.outcome === 'not-applied') {
      const message = `${nameOf(kind)}: cannot connect to ${this.base} (${network.message}); is nodepool-example-cloud running there?`;
      return new TransientError(message, { cause: error, outcome: 'not-applied' });
    }
    const message = `${nameOf(kind)}: the connection to ${this.base} broke before the answer came (${network?.message ?? causeOf(error)})`;
    return new TransientError(message, { cause: error, outcome: 'unknown' });
  }
}

/** Returns the reason of an error of `fetch`, whose own message is always `fetch failed`. */
function causeOf(error: unknown): string {
  return isError(error) && isError(error.cause) ? causeOf(error.cause) : reasonOf(error);
}

function json(value: object): Payload {
  return { type: 'application/json', body: JSON.stringify(value) };
}

function from(marker: string | null): string {
  return marker === null ? '' : `?marker=${encodeURIComponent(marker)}`;
}

function bodyOf(payload: Payload | undefined): RequestInit {
  if (payload === undefined) return {};
  const headers = { 'content-type': payload.type };
  if (typeof payload.body === 'string') return { headers, body: payload.body };
  return { headers, body: Readable.toWeb(payload.body()), duplex: 'half' };
}

/** Returns the parsed JSON; undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
