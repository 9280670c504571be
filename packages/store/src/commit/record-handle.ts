/** A record whose lock this process holds: its content, its version, and its planned writes. */

import type { HeldLock } from '@nodepool/zookeeper';
import type { Codec, Source, Stated } from '../codec/codec.js';

/** The effect of a transaction on one locked record. */
export interface Step {
  readonly record: AnyRecordHandle;
  /** `check`: the version must match. `none`: the record is not part of the transaction. */
  readonly write: { readonly data: Uint8Array; readonly written: (version: number) => void } | 'check' | 'none';
  /** True if the lock is released. */
  readonly release: boolean;
}

/** The part of a record's handle that does not depend on the kind of the record. */
export type AnyRecordHandle = Pick<
  RecordHandle<Stated & { readonly state: string }>,
  'path' | 'lock' | 'version' | 'tail'
>;

/** `D`: the content, `I`: the identity of the record. */
export class RecordHandle<D extends Stated & { readonly state: string }, I extends object = { readonly id: string }> {
  /** Settles when all earlier writes have ended; undefined if none is in progress. */
  tail: Promise<void> | undefined;

  constructor(
    readonly path: string,
    readonly lock: HeldLock,
    private readonly codec: Codec<I, D>,
    public source: Source<I & D>,
    public version: number,
  ) {}

  /** Returns the step for a change, which may be empty. `now`: unix seconds. */
  change(change: Partial<D>, now: number, release: boolean): Step {
    const next = this.codec.change(this.source, stamped(this.source.value, change, now));
    if (next === this.source) return { record: this, write: 'check', release };
    const written = (version: number): void => {
      this.source = next;
      this.version = version;
    };
    const write = { data: next.data, written };
    return { record: this, write, release };
  }

  /** Returns a step that releases the lock without a look at the record. */
  release(): Step {
    return { record: this, write: 'none', release: true };
  }
}

/** Returns the change, with `state_time` if the state changes. */
export function stamped<D extends Stated & { readonly state: string }>(
  before: { readonly state: string },
  change: Partial<D>,
  now: number,
): Partial<D> {
  const changes = change.state !== undefined && change.state !== before.state;
  if (!changes || change.state_time !== undefined) return change;
  // The spread comes last: V8 gives each object with a property after a spread a layout of its own.
  return { state_time: now, ...change };
}

/**
 * Runs `work` after the writes in progress on the records have ended, so that writes are applied in the order of the
 * calls. `work` must not throw before it returns its promise.
 */
export function inTurn<T>(records: readonly AnyRecordHandle[], work: () => Promise<T>): Promise<T> {
  const before: Promise<void>[] = [];
  for (const { tail } of records) if (tail !== undefined) before.push(tail);
  const result = before.length === 0 ? work() : Promise.all(before).then(work);
  // Runs before the reactions of the caller, which also receives the error of the work.
  const end = (): void => {
    for (const record of records) if (record.tail === tail) record.tail = undefined;
  };
  const tail = result.then(end, end);
  for (const record of records) record.tail = tail;
  return result;
}
