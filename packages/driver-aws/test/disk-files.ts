/** Disk images for tests. */

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '@nodepool/core/testing';

const MIB = 1024 * 1024;

export interface DiskFile {
  readonly path: string;
  readonly sha256: string;
  remove(): void;
}

/** Writes a file whose MiB all differ, also from those of files with another seed. */
export function diskFile(mib: number, seed = 1): DiskFile {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
  const path = join(folder, 'disk.raw');
  const random = seededRandom(seed);
  const blocks = Array.from({ length: mib }, () => Buffer.alloc(MIB, String(random.next())));
  const content = Buffer.concat(blocks);
  writeFileSync(path, content);
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { path, sha256, remove: () => rmSync(folder, { recursive: true }) };
}
