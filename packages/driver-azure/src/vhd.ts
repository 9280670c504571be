/**
 * Fixed virtual hard disks in Azure's format: the disk's bytes, a whole number of MiB, and a footer of 512 bytes.
 *
 * Sources: "Virtual Hard Disk Image Format Specification" (Microsoft, 2006) for the footer; "Prepare a Windows VHD to
 * upload to Azure" for Azure's requirements.
 */

import { ConfigurationError } from '@nodepool/core';
import { open } from 'node:fs/promises';

const FOOTER_BYTES = 512;
const MIB = 2 ** 20;
const FIXED = 2;

/** Resolves with the file's size in bytes with footer. Rejects with `ConfigurationError` if Azure would refuse it. */
export async function checkVhd(file: string): Promise<number> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    if (size <= FOOTER_BYTES) throw refused(file, `it has ${size} bytes, which is too small for a disk`);
    const footer = Buffer.alloc(FOOTER_BYTES);
    await handle.read(footer, 0, FOOTER_BYTES, size - FOOTER_BYTES);
    checkFooter(file, footer, size - FOOTER_BYTES);
    return size;
  } finally {
    await handle.close();
  }
}

function checkFooter(file: string, footer: Buffer, diskBytes: number): void {
  if (footer.toString('latin1', 0, 8) !== 'conectix') throw refused(file, 'it has no VHD footer at its end');
  if (footer.readUInt32BE(64) !== checksum(footer)) throw refused(file, 'the checksum of its footer is wrong');
  const type = footer.readUInt32BE(60);
  if (type !== FIXED)
    throw refused(file, `it is a ${type === 3 ? 'dynamic' : 'differencing'} disk, and Azure accepts only fixed ones`);
  const said = footer.readBigUInt64BE(48);
  if (said !== BigInt(diskBytes)) throw refused(file, `it has ${diskBytes} bytes, and its footer says ${said}`);
  if (diskBytes % MIB !== 0) throw refused(file, `its size of ${diskBytes} bytes is not a whole number of MiB`);
}

/** Returns the complement of the sum of all bytes except those of the checksum. */
export function checksum(footer: Buffer): number {
  let sum = 0;
  for (const [index, byte] of footer.entries()) if (index < 64 || index >= 68) sum += byte;
  return ~sum >>> 0;
}

function refused(file: string, why: string): ConfigurationError {
  return new ConfigurationError(
    `Azure does not accept ${file} as a disk: ${why}; let diskimage-builder create one with "subformat=fixed,force_size" and a size in whole MiB`,
  );
}
