/** The option `--data`. */

import { tmpdir } from 'node:os';
import { UsageError } from '@nodepool/harness';

/** Returns the folder of ZooKeeper's data. Throws a `UsageError` if the value is unknown. */
export function dataFolder(option: string): string {
  if (option === 'disk') return tmpdir();
  if (option === 'memory') return '/dev/shm';
  throw new UsageError(`--data is memory or disk, not ${JSON.stringify(option)}`);
}
