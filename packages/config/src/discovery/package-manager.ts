/** The commands that change what a site has installed, of the package manager that the site uses. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface PackageManager {
  /** e.g. `npm install @nodepool/driver-x`; `spec`: a package, with a range where one is needed. */
  install(spec: string): string;
  dedupe(): string;
}

/** What the managers leave where they have installed something; npm is the one that everybody has. */
const TRACES: readonly (readonly [trace: string, make: (folder: string) => PackageManager])[] = [
  ['pnpm-lock.yaml', pnpm],
  [join('node_modules', '.modules.yaml'), pnpm],
  ['package-lock.json', npm],
  [join('node_modules', '.package-lock.json'), npm],
];

/** The package manager of the first of the folders that is at a site, or below one. */
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
