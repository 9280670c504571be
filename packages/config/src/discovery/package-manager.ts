/** The commands of the site's package manager that change the installed packages. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface PackageManager {
  /** Returns e.g. `npm install @nodepool/driver-x`; `spec`: a package, with a range if needed. */
  install(spec: string): string;
  dedupe(): string;
}

/** Files that identify a package manager by an installation; npm is the default, because it comes with Node.js. */
const TRACES: readonly (readonly [trace: string, make: (folder: string) => PackageManager])[] = [
  ['pnpm-lock.yaml', pnpm],
  [join('node_modules', '.modules.yaml'), pnpm],
  ['package-lock.json', npm],
  [join('node_modules', '.package-lock.json'), npm],
];

/** Returns the package manager of the first folder that is inside a site. */
export function packageManagerOf(folders: readonly string[]): PackageManager {
  for (const folder of folders) {
    for (let at = folder; ; at = dirname(at)) {
      for (const [trace, make] of TRACES) if (existsSync(join(at, trace))) return make(at);
      if (dirname(at) === at) break;
    }
  }
  return npm(undefined);
}

function npm(folder: string | undefined): PackageManager {
  const where = folder === undefined ? '' : ` (in ${folder})`;
  return { install: (spec) => `npm install ${spec}${where}`, dedupe: () => `npm dedupe${where}` };
}

function pnpm(folder: string): PackageManager {
  return { install: (spec) => `pnpm add ${spec} (in ${folder})`, dedupe: () => `pnpm dedupe (in ${folder})` };
}
