/**
 * Packs a disk for Compute Engine: a gzipped GNU tar that contains only `disk.raw`, which must have a size of whole GiB
 * (https://cloud.google.com/compute/docs/import/import-existing-image). Memory use is limited to stream buffers for
 * disks of any size.
 */

import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';

const BLOCK_BYTES = 512;
const RECORD_BYTES = 10_240;
const PIECE_BYTES = 256 * 1024;
/** Compute Engine refuses disks whose size is not a multiple of this. */
export const DISK_GRAIN_BYTES = 2 ** 30;
/** Sizes from this limit do not fit into the header's octal digits and are encoded in binary, as in GNU tar. */
const OCTAL_LIMIT = 8 ** 11;

export interface PackOptions {
  readonly file: string;
  readonly size: number;
  /** The packed disk ends with zeros up to a multiple of this size in bytes, which is a multiple of 512. */
  readonly grainBytes: number;
  readonly signal: AbortSignal;
  /** Called with each piece of the disk that was read. */
  readonly onPiece: (piece: Buffer) => void;
}

/** Returns the compressed bytes as a stream. The stream fails if the file's size differs from `size`. */
export function packDisk(options: PackOptions): Readable {
  const gzip = createGzip({ level: constants.Z_BEST_SPEED, chunkSize: PIECE_BYTES });
  const tar = Readable.from(tarPieces(options), { objectMode: false, highWaterMark: PIECE_BYTES });
  tar.once('error', (error) => gzip.destroy(error));
  gzip.once('close', () => tar.destroy());
  return tar.pipe(gzip);
}

async function* tarPieces({ file, size, grainBytes, signal, onPiece }: PackOptions): AsyncGenerator<Buffer> {
  const diskBytes = Math.ceil(size / grainBytes) * grainBytes;
  yield tarHeader('disk.raw', diskBytes);
  let read = 0;
  const pieces = createReadStream(file, { signal, highWaterMark: PIECE_BYTES }) as AsyncIterable<Buffer>;
  for await (const piece of pieces) {
    read += piece.byteLength;
    onPiece(piece);
    yield piece;
  }
  if (read !== size) throw new Error(`${file} has ${read} bytes, and had ${size} when its upload began`);
  const used = BLOCK_BYTES + diskBytes + 2 * BLOCK_BYTES;
  yield* zeros(diskBytes - size + 2 * BLOCK_BYTES + ((RECORD_BYTES - (used % RECORD_BYTES)) % RECORD_BYTES));
}

function* zeros(bytes: number): Generator<Buffer> {
  const piece = Buffer.alloc(PIECE_BYTES);
  for (let left = bytes; left > 0; left -= PIECE_BYTES) yield piece.subarray(0, left);
}

/** Returns a header in GNU tar's old format (`--format=oldgnu`), without owner and modification time. */
export function tarHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name, 0, 100);
  header.write('0000644\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  if (size < OCTAL_LIMIT) header.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  else {
    header.writeUInt8(0x80, 124);
    header.writeBigUInt64BE(BigInt(size), 128);
  }
  header.write('00000000000\0', 136);
  header.write('        ', 148);
  header.write('0', 156);
  header.write('ustar  \0', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}
