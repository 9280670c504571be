/** Asynchronous operations, which are accepted first, complete later, and are polled at their own URLs. */

import type { Clock, JsonObject, RandomSource } from '@nodepool/core';
import { notFound } from './api-error.js';

interface Operation {
  readonly endsAt: number;
  /** Evaluated when the operation ends, because a VM can fail during its creation. */
  readonly error: () => JsonObject | undefined;
  readonly result: (() => JsonObject) | undefined;
}

export interface NewOperation {
  readonly workMs: number;
  readonly error?: () => JsonObject | undefined;
  readonly result?: () => JsonObject;
}

export class Operations {
  private readonly operations = new Map<string, Operation>();

  constructor(
    private readonly clock: Clock,
    private readonly random: RandomSource,
  ) {}

  /** Starts an operation and returns its id. */
  start({ workMs, error = () => undefined, result }: NewOperation): string {
    const id = this.random.uuidHex();
    this.operations.set(id, { endsAt: this.clock.monotonic() + workMs, error, result });
    return id;
  }

  /** Returns the body of the operation's status URL. */
  state(id: string): JsonObject {
    const { endsAt, error, result } = this.find(id);
    if (this.clock.monotonic() < endsAt) return { name: id, status: 'InProgress' };
    const failure = error();
    if (failure !== undefined) return { name: id, status: 'Failed', error: failure };
    return { name: id, status: 'Succeeded', ...(result === undefined ? {} : { properties: { output: result() } }) };
  }

  /** Returns the body of the operation's result URL, or undefined if the operation is still in progress. */
  result(id: string): JsonObject | undefined {
    const { endsAt, result } = this.find(id);
    return this.clock.monotonic() < endsAt ? undefined : (result?.() ?? {});
  }

  /** Deletes all operations; Azure keeps them for a limited time. */
  forgetAll(): void {
    this.operations.clear();
  }

  private find(id: string): Operation {
    const operation = this.operations.get(id);
    if (operation === undefined) throw notFound(`operations/${id}`);
    return operation;
  }
}
