/** Checks the origin of the packages in an installation. */

import { CommandError, QUIET_INSTALL, run } from '../command.js';
import { findings, type Finding } from '../finding.js';
import type { InstalledPackage } from './licences.js';

/** Our own packages, which were packed locally. */
const WORKSPACE_PACKAGE = /^@nodepool\//;
const STRONG_CHECKSUM = /^sha(384|512)-/;

/**
 * Checks that every dependency is a registry archive with a verified checksum, and not from a repository or web page.
 */
export function checkOrigins(installed: readonly InstalledPackage[]): Finding[] {
  return findings(
    'provenance',
    installed
      .filter(({ name }) => !WORKSPACE_PACKAGE.test(name))
      .flatMap(({ name, version, resolved, integrity }) => {
        const problems: string[] = [];
        if (resolved !== undefined && !/^https?:\/\/[^?#]+\.tgz$/.test(resolved)) {
          problems.push(`${name}@${version} comes from ${resolved}, and not from a registry`);
        }
        if (integrity === undefined || !STRONG_CHECKSUM.test(integrity)) {
          problems.push(`${name}@${version} has no secure checksum (${integrity ?? 'none'})`);
        }
        return problems;
      }),
  );
}

/**
 * Verifies the registry's signatures of all packages in a folder, and their provenance statements. Requires a signing
 * registry and internet access, because npm downloads the keys.
 */
export async function checkSignatures(folder: string): Promise<Finding[]> {
  try {
    await run('npm', ['audit', 'signatures'], { cwd: folder, env: QUIET_INSTALL });
    return [];
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return findings('provenance', [error.message]);
  }
}
