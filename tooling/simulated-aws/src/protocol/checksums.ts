/**
 * Bodies in chunks, and checksums of uploads:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html.
 */

import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { AwsError } from './aws-error.js';

export interface DecodedBody {
  readonly body: Buffer;
  /** Headers that follow the body. */
  readonly trailers: Readonly<Record<string, string>>;
}

/** Returns the content of a body in the encoding `aws-chunked`. Throws if it is malformed. */
export function decodeChunks(encoded: Buffer): DecodedBody {
  const chunks: Buffer[] = [];
  let position = 0;
  for (;;) {
    const end = encoded.indexOf('\r\n', position);
    const header = end === -1 ? '' : encoded.toString('latin1', position, end);
    const size = /^([0-9a-fA-F]+)(;chunk-signature=[0-9a-f]+)?$/.exec(header)?.[1];
    if (size === undefined) throw new AwsError('IncompleteBody', 'The chunks of the body are malformed.');
    const length = Number.parseInt(size, 16);
    position = end + 2;
    if (length === 0) break;
    chunks.push(encoded.subarray(position, position + length));
    position += length + 2;
  }
  const lines = encoded
    .toString('latin1', position)
    .split('\r\n')
    .filter((line) => line !== '');
  const trailers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { body: Buffer.concat(chunks), trailers: Object.fromEntries(trailers) };
}

const ALGORITHMS: Readonly<Record<string, (body: Uint8Array) => Buffer>> = {
  crc32: (body) => uint32(crc32(body)),
  crc32c: (body) => uint32(crc32c(body)),
  sha1: (body) => createHash('sha1').update(body).digest(),
  sha256: (body) => createHash('sha256').update(body).digest(),
  sha512: (body) => createHash('sha512').update(body).digest(),
  md5: (body) => createHash('md5').update(body).digest(),
};

/** Checks the checksums in headers or trailers against the body. Throws if one differs or is unsupported. */
export function checkChecksums(body: Uint8Array, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    const algorithm = /^x-amz-checksum-(\w+)$/.exec(name)?.[1];
    if (algorithm === undefined || ['algorithm', 'type', 'mode'].includes(algorithm)) continue;
    const compute = ALGORITHMS[algorithm];
    if (compute === undefined)
      throw new AwsError('NotImplemented', `The simulation has no checksums ${algorithm}`, 501);
    if (compute(body).toString('base64') !== value) {
      throw new AwsError(
        'BadDigest',
        `The ${algorithm.toUpperCase()} you specified did not match the calculated checksum.`,
      );
    }
  }
  const md5 = headers['content-md5'];
  if (md5 !== undefined && createHash('md5').update(body).digest('base64') !== md5) {
    throw new AwsError('BadDigest', 'The Content-MD5 you specified did not match what we received.');
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** Polynomial of Castagnoli, reversed. */
const CASTAGNOLI = 0x82_f6_3b_78;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value & 1) === 1 ? (value >>> 1) ^ CASTAGNOLI : value >>> 1;
  return value >>> 0;
});

function crc32c(body: Uint8Array): number {
  let crc = 0xff_ff_ff_ff;
  for (const byte of body) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xff_ff_ff_ff) >>> 0;
}
