/** Version of this package. */

import { join } from 'node:path';
import { versionOf } from '@nodepool/core';

export function packageVersion(): string {
  return versionOf(join(__dirname, '..'));
}
