/** A record whose lock we hold: what it holds, its version, and the writes that are planned for it. */

import type { HeldLock } from '@nodepool/zookeeper';
import type { Codec, Source, Stated } from './codec/codec.js';

const encoder = new TextEncoder();

/** JSON text as the data of a znode. */
export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** What a transaction does to one owned record. */
export interface Step {
  readonly record: Owned;
  /** `check`: the record must be as we know it. `none`: it is not looked at. */
  readonly write: { readonly data: Uint8Array; readonly written: (version: number) => void } | 'check' | 'none';
  /** Gives the lock up. */
  readonly release: boolean;
}

/** What a transaction needs to know of a record. */
export interface Owned {
  readonly path: string;
  readonly lock: HeldLock;
  readonly version: number;
  /** Settles when everything that was begun before has ended; undefined: nothing is in progress. */
  tail: Promise<void> | undefined;
}

/** `D`: what the record holds, `I`: what identifies it. */
export class OwnedRecord<
  D extends Stated & { readonly state: string },
  I extends object = { readonly id: string },
> implements Owned {
  tail: Promise<void> | undefined;

  constructor(
    readonly path: string,
    readonly lock: HeldLock,
    private readonly codec: Codec<I, D>,
    public source: Source<I & D>,
    public version: number,
  ) {}

  /** A change, which may turn out to be none. `now`: unix seconds. */
  change(change: Partial<D>, now: number, release: boolean): Step {
    const next = this.codec.change(this.source, stamped(this.source.value, change, now));
    if (next.text === this.source.text) return { record: this, write: 'check', release };
    const written = (version: number): void => {
      this.source = next;
      this.version = version;
    };
    return { record: this, write: { data: bytesOf(next.text), written }, release };
  }

  /** Gives the lock up, whatever the record holds. */
  release(): Step {
    return { record: this, write: 'none', release: true };
  }
}

/** The change, with `state_time` when the state becomes another. */
export function stamped<D extends Stated & { readonly state: string }>(
  before: { readonly state: string },
  change: Partial<D>,
  now: number,
): Partial<D> {
  const changes = change.state !== undefined && change.state !== before.state;
  return changes && change.state_time === undefined ? { ...change, state_time: now } : change;
}

/** Runs `work` once what is in progress on the records has ended, so that writes are applied in the order of the calls. */
export async function inTurn<T>(records: readonly Owned[], work: () => Promise<T>): Promise<T> {
  const before = records.flatMap(({ tail }) => (tail === undefined ? [] : [tail]));
  const result = before.length === 0 ? work() : Promise.all(before).then(work);
  const tail = result.then(ignore, ignore);
  for (const record of records) record.tail = tail;
  try {
    return await result;
  } finally {
    for (const record of records) {
      if (record.tail === tail) record.tail = undefined;
    }
  }
}

/** Whoever began it hears of its result. */
function ignore(): void {
  return undefined;
}
