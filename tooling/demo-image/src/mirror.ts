/** The Debian mirror of this machine, from which images are built too. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = '/etc/apt/sources.list.d';
const LIST = '/etc/apt/sources.list';

/** Returns the URL of the first configured mirror. Throws an error with a remedy if apt has none. */
export function machineMirror(): string {
  const given = process.env['DIB_DISTRIBUTION_MIRROR'];
  if (given !== undefined && given !== '') return given;
  const names = existsSync(FOLDER) ? readdirSync(FOLDER).sort() : [];
  for (const name of names.filter((each) => each.endsWith('.sources'))) {
    const found = /^URIs:\s*(\S+)/m.exec(readFileSync(join(FOLDER, name), 'utf8'))?.[1];
    if (found !== undefined) return found;
  }
  const listed = existsSync(LIST) ? /^deb\s+(?:\[[^\]]*\]\s+)?(\S+)/m.exec(readFileSync(LIST, 'utf8'))?.[1] : undefined;
  if (listed !== undefined) return listed;
  throw new Error(`neither ${FOLDER} nor ${LIST} names a Debian mirror: set DIB_DISTRIBUTION_MIRROR`);
}
