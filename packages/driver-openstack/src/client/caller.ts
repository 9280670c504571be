/** Makes single HTTP calls with a deadline, metrics, and errors that core understands. */

import { GuardedCalls, TimerQueue, toDriverError, type ApiCall, type Call, type Clock } from '@nodepool/core';
import type { Readable } from 'node:stream';
import { connectionErrorOf, type Attempted } from '../errors.js';
import type { HttpAnswer, HttpRequest, Transport } from './transport.js';

/** The kind of a call, for messages and metrics. */
export interface Operation {
  readonly service: string;
  readonly method: HttpRequest['method'];
  /** e.g. `servers.detail`. */
  readonly operation: string;
}

export interface Message {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Readable | undefined;
  readonly timeoutMs: number;
}

export interface CallerOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly onApiCall: (call: ApiCall) => void;
}

export class Caller {
  private readonly guarded: GuardedCalls;

  constructor(private readonly options: CallerOptions) {
    this.guarded = new GuardedCalls(new TimerQueue(options.clock));
  }

  /** Resolves with the answer for any status. Rejects with a `DriverError` that has an outcome. */
  async send(kind: Operation, { timeoutMs, ...message }: Message, call: Call): Promise<HttpAnswer> {
    const { clock, onApiCall, transport } = this.options;
    const startedAt = clock.monotonic();
    const deadline = Math.min(call.deadline, startedAt + timeoutMs);
    let status: ApiCall['status'];
    try {
      // A spread would evaluate the getters of a state machine's call.
      const bounded: Call = { signal: call.signal, deadline, log: call.log };
      const answer = await this.guarded.make(nameOf(kind), bounded, async ({ signal }) => {
        try {
          return await transport.send({ method: kind.method, ...message, body: message.body, signal });
        } catch (error) {
          throw connectionErrorOf(this.attempted(kind), message.url, error);
        }
      });
      status = answer.status;
      return answer;
    } catch (error) {
      const failure = toDriverError(error);
      status = failure.code;
      throw failure;
    } finally {
      onApiCall({ ...kind, durationMs: clock.monotonic() - startedAt, status });
    }
  }

  /** Returns the input of `errorOf`. */
  attempted(kind: Operation): Attempted {
    return { operation: nameOf(kind), changesSomething: kind.method !== 'GET', now: this.options.clock.now() };
  }

  /** Aborts all calls in progress. */
  stop(): void {
    this.guarded.stop();
  }
}

/** e.g. `compute: POST servers`. */
export function nameOf({ service, method, operation }: Operation): string {
  return `${service}: ${method} ${operation}`;
}
