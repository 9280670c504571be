/** Source of all randomness, so that a simulation can reproduce it. */
import { randomFillSync } from 'node:crypto';

export interface RandomSource {
  /** Returns a number uniformly distributed in [0, 1). */
  next(): number;
  /** Returns 32 hexadecimal digits, a version 4 uuid without dashes. */
  uuidHex(): string;
}

const UUID_BYTES = 16;

/** Draws the bytes of many uuids at once, because each draw makes a system call. */
class UuidSource {
  private readonly bytes = Buffer.alloc(128 * UUID_BYTES);
  private used = this.bytes.length;

  next(): string {
    if (this.used === this.bytes.length) {
      randomFillSync(this.bytes);
      this.used = 0;
    }
    this.used += UUID_BYTES;
    return uuidHexAt(this.bytes, this.used - UUID_BYTES);
  }
}

const systemUuids = new UuidSource();

export const systemRandom: RandomSource = {
  next: () => Math.random(),
  uuidHex: () => systemUuids.next(),
};

/** Returns a source that yields the same numbers for the same seed (mulberry32). */
export function seededRandom(seed: number): RandomSource {
  let state = seed >>> 0;
  const nextUint32 = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return {
    next: () => nextUint32() / 2 ** 32,
    uuidHex: () =>
      uuidHexAt(Buffer.from(Uint32Array.of(nextUint32(), nextUint32(), nextUint32(), nextUint32()).buffer), 0),
  };
}

/** Returns the 16 bytes at `start` as a version 4 uuid. */
function uuidHexAt(bytes: Buffer, start: number): string {
  bytes[start + 6] = ((bytes[start + 6] ?? 0) & 0x0f) | 0x40;
  bytes[start + 8] = ((bytes[start + 8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex', start, start + UUID_BYTES);
}
