/** Limits for files that other programs make: their size, and the space that they leave on the disk. */

import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Transform } from 'node:stream';
import { BuildFailedError } from '../disk-image-creator.js';
import { sourceFailed } from './source-failure.js';

/** Space (bytes) that must remain on the disk, for other builds and their records. */
const RESERVE_BYTES = 256 * 2 ** 20;
/** Interval between checks of the free space, in written bytes. */
const CHECK_EVERY_BYTES = 64 * 2 ** 20;
const GIB = 2 ** 30;

/** Throws `BuildFailedError` if a file of that size is larger than `max-size` allows. */
export function checkSize(what: string, bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  throw sourceFailed(`${what} is larger than ${round(maxBytes)} GiB, the limit \`max-size\` of its source`);
}

/** Rejects with `BuildFailedError` if the disk of `file` lacks the space for further bytes. */
export async function checkSpace(what: string, file: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(file));
  const free = bavail * bsize - RESERVE_BYTES;
  if (bytes <= free) return;
  const needed = `needs ${round(bytes)} GiB, and ${dirname(file)} has ${round(Math.max(0, free))} GiB to spare`;
  throw new BuildFailedError('space', `${what} ${needed}`);
}

/** Returns a stream that passes bytes on to `file`, and fails beyond the limits. `present` bytes are there already. */
export function boundedBytes(
  what: string,
  file: string,
  { maxBytes, present = 0 }: { readonly maxBytes: number; readonly present?: number },
): Transform {
  let total = present;
  let unchecked = 0;
  return new Transform({
    transform(piece: Buffer, _encoding, done): void {
      total += piece.byteLength;
      unchecked += piece.byteLength;
      const check = async (): Promise<void> => {
        checkSize(what, total, maxBytes);
        if (unchecked < CHECK_EVERY_BYTES) return;
        unchecked = 0;
        await checkSpace(what, file, piece.byteLength);
      };
      check().then(
        () => done(null, piece),
        (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
      );
    },
  });
}

function round(bytes: number): string {
  const gib = bytes / GIB;
  return gib >= 10 ? String(Math.round(gib)) : gib.toPrecision(2);
}
