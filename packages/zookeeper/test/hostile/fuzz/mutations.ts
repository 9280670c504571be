/** Mutations of bytes, driven by the caller's random source. */

/** Uniform in [0, 1). */
export type Random = () => number;

export const below = (random: Random, limit: number): number => Math.floor(random() * limit);

export function pick<T>(random: Random, items: readonly T[]): T {
  const item = items[below(random, items.length)];
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
}

/** Integers that provoke overflows and off-by-one errors. */
const BOUNDARY_VALUES = [0, -1, -2, 1, 4, 127, 128, 255, 65_535, 2 ** 24, 2 ** 31 - 1, -(2 ** 31), -101, -112, -115];
const LARGEST_INSERTION = 64;

type Mutation = (bytes: Buffer, random: Random) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  // Flips one bit.
  (bytes, random) =>
    changed(bytes, random, (copy, at) => copy.writeUInt8(copy.readUInt8(at) ^ (1 << below(random, 8)), at)),
  // Replaces one byte.
  (bytes, random) => changed(bytes, random, (copy, at) => copy.writeUInt8(below(random, 256), at)),
  // Replaces one integer: a length, a count, a code.
  (bytes, random) => {
    if (bytes.length < 4) return bytes;
    const copy = Buffer.from(bytes);
    const at = below(random, bytes.length - 3);
    copy.writeInt32BE(random() < 0.7 ? pick(random, BOUNDARY_VALUES) : bytes.length - at + below(random, 9) - 4, at);
    return copy;
  },
  // Truncates the message.
  (bytes, random) => bytes.subarray(0, below(random, bytes.length + 1)),
  // Removes a part of the middle.
  (bytes, random) => {
    const from = below(random, bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + below(random, bytes.length - from + 1))]);
  },
  // Inserts noise.
  (bytes, random) => {
    const at = below(random, bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), noise(random, below(random, LARGEST_INSERTION)), bytes.subarray(at)]);
  },
  // Repeats a part.
  (bytes, random) => {
    const from = below(random, bytes.length + 1);
    const part = bytes.subarray(from, from + below(random, bytes.length - from + 1));
    return Buffer.concat([bytes.subarray(0, from), part, bytes.subarray(from)]);
  },
  // Replaces everything by noise.
  (bytes, random) => noise(random, bytes.length),
];

/** Returns the bytes after one to four mutations. */
export function mutated(bytes: Buffer, random: Random): Buffer {
  let result = bytes;
  for (let left = 1 + below(random, 4); left > 0; left--) result = pick(random, MUTATIONS)(result, random);
  return result;
}

export function noise(random: Random, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let index = 0; index < length; index++) bytes[index] = below(random, 256);
  return bytes;
}

function changed(bytes: Buffer, random: Random, change: (copy: Buffer, at: number) => void): Buffer {
  if (bytes.length === 0) return bytes;
  const copy = Buffer.from(bytes);
  change(copy, below(random, bytes.length));
  return copy;
}

/** Splits the bytes into pieces of random size; some are empty. */
export function inPieces(bytes: Buffer, random: Random): Buffer[] {
  const pieces: Buffer[] = [];
  const largest = pick(random, [1, 7, 64, bytes.length + 1]);
  for (let offset = 0; offset < bytes.length;) {
    const end = offset + below(random, largest + 1);
    pieces.push(bytes.subarray(offset, end));
    offset = end;
  }
  return pieces;
}
