/** Checksums of large files, computed in pieces to keep the event loop responsive. */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';

/** Piece size, bytes. Hashing one piece takes about a millisecond. */
const PIECE_BYTES = 1 << 20;

export const CHECKSUM_KINDS = ['md5', 'sha256'] as const;
export type ChecksumKind = (typeof CHECKSUM_KINDS)[number];

const DIGITS: Readonly<Record<ChecksumKind, RegExp>> = { md5: /^[0-9a-f]{32}$/i, sha256: /^[0-9a-f]{64}$/i };

/** Returns the checksum in the file beside an image, as `md5sum` writes it; undefined if there is no readable one. */
export async function readChecksum(file: string, kind: ChecksumKind): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(`${file}.${kind}`, 'utf8');
  } catch {
    // The checksum is computed anew, whatever the error.
    return undefined;
  }
  const [digits] = text.trim().split(/\s+/);
  return digits !== undefined && DIGITS[kind].test(digits) ? digits.toLowerCase() : undefined;
}

/** Computes these checksums of a file in one pass and writes them beside it. */
export async function writeChecksums(file: string, kinds: readonly ChecksumKind[], signal: AbortSignal): Promise<void> {
  const hashes = kinds.map((kind) => ({ kind, hash: createHash(kind) }));
  const pieces = createReadStream(file, { highWaterMark: PIECE_BYTES, signal }) as AsyncIterable<Buffer>;
  for await (const piece of pieces) for (const { hash } of hashes) hash.update(piece);
  for (const { kind, hash } of hashes) {
    const beside = `${file}.${kind}`;
    // Written under a temporary name, so that the file is never incomplete.
    await writeFile(`${beside}.tmp`, `${hash.digest('hex')}  ${basename(file)}\n`);
    await rename(`${beside}.tmp`, beside);
  }
}
