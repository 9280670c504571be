/** Version of this package, as the component registry and `--version` tell it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function packageVersion(): string {
  const parsed: unknown = JSON.parse(readFileSync(join(__dirname, '..', 'package.json'), 'utf8'));
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? parsed.version : undefined;
  return typeof version === 'string' ? version : 'unknown';
}
