/** Source of all randomness, so that a simulation can reproduce it. */
import { randomUUID } from 'node:crypto';

export interface RandomSource {
  /** Returns a number uniformly distributed in [0, 1). */
  next(): number;
  /** Returns 32 hexadecimal digits, a version 4 uuid without dashes. */
  uuidHex(): string;
}

export const systemRandom: RandomSource = {
  next: () => Math.random(),
  // Node.js draws the bytes of many uuids at once, while `randomBytes` makes a system call for each.
  uuidHex: () => randomUUID().replaceAll('-', ''),
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
      uuidHexOf(Buffer.from(Uint32Array.of(nextUint32(), nextUint32(), nextUint32(), nextUint32()).buffer)),
  };
}

function uuidHexOf(bytes: Buffer): string {
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex');
}
