/** Asynchronous operations: accepted now, done later, asked for at an address of their own. */

import type { Clock, JsonObject, RandomSource } from '@nodepool/core';
import { notFound } from './api-error.js';

interface Operation {
  readonly endsAt: number;
  /** Decided when it ends: a VM can break while it is made. */
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

  /** Gives its id. */
  start({ workMs, error = () => undefined, result }: NewOperation): string {
    const id = this.random.uuidHex();
    this.operations.set(id, { endsAt: this.clock.monotonic() + workMs, error, result });
    return id;
  }

  /** What the address of its state says. */
  state(id: string): JsonObject {
    const { endsAt, error, result } = this.find(id);
    if (this.clock.monotonic() < endsAt) return { name: id, status: 'InProgress' };
    const failure = error();
    if (failure !== undefined) return { name: id, status: 'Failed', error: failure };
    return { name: id, status: 'Succeeded', ...(result === undefined ? {} : { properties: { output: result() } }) };
  }

  /** What the address of its result says; undefined: it is not done. */
  result(id: string): JsonObject | undefined {
    const { endsAt, result } = this.find(id);
    return this.clock.monotonic() < endsAt ? undefined : (result?.() ?? {});
  }

  /** Azure remembers them for a while only. */
  forgetAll(): void {
    this.operations.clear();
  }

  private find(id: string): Operation {
    const operation = this.operations.get(id);
    if (operation === undefined) throw notFound(`operations/${id}`);
    return operation;
  }
}
