/** Version of a package, as the component registry and `--version` tell it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `folder`: where the package.json is. */
export function versionOf(folder: string): string {
  const parsed: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? parsed.version : undefined;
  return typeof version === 'string' ? version : 'unknown';
}
