/** Watches what this process has under way besides timers: HTTP calls, of `fetch` and of `node:http`, and file operations. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { isJsonObject, systemClock } from '@nodepool/core';

/** Names of `process.getActiveResourcesInfo` for operations that end by themselves. */
const OPERATION = /^(FSReq|GetAddrInfoReq|TCPConnect|PipeConnect|Write|Shutdown)/;

/** Turns of the event loop that what has just been answered gets to be worked on. */
const TURNS = 3;

export class InputOutput {
  private readonly calls = new Set<object>();
  private progressedAt = -Infinity;

  /** `patienceMs`: calls that make no progress for so long count as not under way. */
  constructor(private readonly patienceMs: number) {}

  /** Whether a file operation is under way, or a call that has made progress lately. */
  get busy(): boolean {
    if (process.getActiveResourcesInfo().some((name) => OPERATION.test(name))) {
      this.progress();
      return true;
    }
    return this.calls.size > 0 && systemClock.monotonic() - this.progressedAt < this.patienceMs;
  }

  /** Runs `work`, during which calls are seen. */
  async watched<T>(work: () => Promise<T>): Promise<T> {
    for (const [channel, listener] of this.listeners) subscribe(channel, listener);
    try {
      return await work();
    } finally {
      for (const [channel, listener] of this.listeners) unsubscribe(channel, listener);
    }
  }

  /** Lets the event loop turn a few times, and look at input and output. */
  async turns(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  private readonly listeners: readonly (readonly [string, (message: unknown) => void])[] = [
    ['undici:request:create', (message) => this.began(requestOf(message))],
    ['undici:request:bodySent', () => this.progress()],
    ['undici:request:headers', () => this.progress()],
    ['undici:request:trailers', (message) => this.ended(requestOf(message))],
    ['undici:request:error', (message) => this.ended(requestOf(message))],
    ['http.client.request.start', (message) => this.beganHttp(requestOf(message))],
    ['http.client.response.finish', (message) => this.ended(requestOf(message))],
  ];

  private beganHttp(request: object | undefined): void {
    this.began(request);
    if (request === undefined) return;
    const ended = (): void => this.ended(request);
    once(request as ClientRequest, 'close').then(ended, ended);
  }

  private began(request: object | undefined): void {
    if (request !== undefined) this.calls.add(request);
    this.progress();
  }

  private ended(request: object | undefined): void {
    if (request !== undefined) this.calls.delete(request);
    this.progress();
  }

  private progress(): void {
    this.progressedAt = systemClock.monotonic();
  }
}

function requestOf(message: unknown): object | undefined {
  if (!isJsonObject(message)) return undefined;
  const request: unknown = message['request'];
  return typeof request === 'object' && request !== null ? request : undefined;
}
