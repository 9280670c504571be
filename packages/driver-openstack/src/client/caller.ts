/** Makes single HTTP calls with a deadline, metrics, and errors that core understands. */

import {
  ApiClient,
  headerIn,
  serverTime,
  type ApiCall,
  type ApiOperation,
  type Call,
  type Clock,
  type DriverError,
  type HttpExchange,
} from '@nodepool/core';
import type { Readable } from 'node:stream';
import { connectionErrorOf, errorOf, type Attempted } from '../errors.js';
import type { HttpAnswer, HttpRequest, Transport } from './transport.js';

/** The kind of a call, for messages and metrics. */
export interface Operation extends ApiOperation {
  readonly method: HttpRequest['method'];
}

export interface Message {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Data are opened again if the message is sent again. */
  readonly body?: string | (() => Readable) | undefined;
  readonly timeoutMs: number;
}

export interface CallerOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly onApiCall: (call: ApiCall) => void;
}

/** An answer with its exchange, for messages. */
export interface Answered {
  readonly status: number;
  readonly answer: HttpAnswer;
  readonly http: HttpExchange;
}

export class Caller {
  readonly api: ApiClient;

  /** `secrets` returns the values to remove from texts. */
  constructor(
    private readonly options: CallerOptions,
    secrets: () => readonly (string | undefined)[],
  ) {
    const { clock, onApiCall } = options;
    this.api = new ApiClient({ clock, onApiCall, secrets });
  }

  /** Resolves with the answer for any status. Rejects with a `DriverError` that has an outcome. */
  send(kind: Operation, { timeoutMs, ...message }: Message, call: Call): Promise<Answered> {
    const { service, method, operation } = kind;
    const errorOfConnection = (error: unknown, now: number): DriverError =>
      connectionErrorOf(this.attempted(kind, now), message.url, error);
    return this.api.send(
      { service, method, operation, name: nameOf(kind), timeoutMs, errorOf: errorOfConnection },
      call,
      ({ signal, http }) => this.exchange(method, message, signal, http),
    );
  }

  /** Sends a message within a call, and follows redirects. */
  async exchange(
    method: HttpRequest['method'],
    { url, headers, body }: Omit<Message, 'timeoutMs'>,
    signal: AbortSignal,
    http: HttpExchange,
  ): Promise<Answered> {
    const { transport } = this.options;
    const answer = await http.send(url, { method }, (at) => transport.send({ method, url: at, headers, body, signal }));
    return { status: answer.status, answer, http };
  }

  /** Returns the `DriverError` for an answer with an error status. */
  failureOf(kind: Operation, { answer, http }: Answered): DriverError {
    const now = serverTime(headerIn(answer.headers, 'date'), this.options.clock.now());
    return this.api.explained(errorOf(this.attempted(kind, now), answer), http);
  }

  /** Returns the input of `errorOf`. */
  attempted(kind: Operation, now: number): Attempted {
    return { operation: nameOf(kind), changesSomething: kind.method !== 'GET', now };
  }

  /** Aborts all calls in progress. */
  stop(): void {
    this.api.stop();
  }
}

/** e.g. `compute: POST servers`. */
export function nameOf({ service, method, operation }: Operation): string {
  return `${service}: ${method} ${operation}`;
}
