/** Fixed VHDs for uploads, as diskimage-builder writes them. */

import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checksum } from '../src/vhd.js';

export interface VhdOptions {
  /** Size of the disk without its footer. */
  readonly bytes?: number;
  /** Size that the footer names. Default `bytes`. */
  readonly recordedBytes?: number;
  /** 2: fixed, 3: dynamic, 4: differencing. */
  readonly type?: number;
  readonly cookie?: string;
}

const SECTOR_BYTES = 512;
const DATA = Buffer.from(Array.from({ length: 251 }, (_, index) => index));

/** Returns a disk with some data at its start, followed by zeros and the footer. */
export function vhd(options: VhdOptions = {}): Buffer {
  const { bytes = 9 * 2 ** 20, recordedBytes = bytes, type = 2, cookie = 'conectix' } = options;
  const disk = Buffer.alloc(bytes + SECTOR_BYTES);
  disk.fill(DATA, 0, Math.min(bytes, 2 ** 20));
  const footer = disk.subarray(bytes);
  footer.write(cookie, 0, 'latin1');
  footer.writeBigUInt64BE(BigInt(recordedBytes), 40);
  footer.writeBigUInt64BE(BigInt(recordedBytes), 48);
  footer.writeUInt32BE(type, 60);
  footer.writeUInt32BE(checksum(footer), 64);
  return disk;
}

/** Writes a disk to a new folder, which the caller deletes. */
export async function writeVhd(): Promise<{ readonly folder: string; readonly file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'azure-disk-'));
  const file = join(folder, 'image.vhd');
  await writeFile(file, vhd());
  return { folder, file };
}
