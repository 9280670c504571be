import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Returns the version of the package that contains `folder`, for `--version` and the component registry. */
export function packageVersion(folder: string): string {
  const file = join(folder, 'package.json');
  if (!existsSync(file) && dirname(folder) !== folder) return packageVersion(dirname(folder));
  const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'));
  const version =
    typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : undefined;
  return typeof version === 'string' ? version : 'unknown';
}
