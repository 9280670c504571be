/** Where what an installation consists of has come from. */

import { CommandError, QUIET_INSTALL, run } from '../command.js';
import { findings, type Finding } from '../finding.js';
import type { InstalledPackage } from './licences.js';

/** Our own were packed a moment ago. */
const OURS = /^@nodepool\//;
const STRONG = /^sha(384|512)-/;

/** Every dependency is an archive of a registry, whose checksum was compared; none comes from a repository or a web page. */
export function checkOrigins(installed: readonly InstalledPackage[]): Finding[] {
  return findings(
    'provenance',
    installed
      .filter(({ name }) => !OURS.test(name))
      .flatMap(({ name, version, resolved, integrity }) => {
        const problems: string[] = [];
        if (resolved !== undefined && !/^https?:\/\/[^?#]+\.tgz$/.test(resolved)) {
          problems.push(`${name}@${version} comes from ${resolved}, and not from a registry`);
        }
        if (integrity === undefined || !STRONG.test(integrity)) {
          problems.push(`${name}@${version} has no checksum that counts (${integrity ?? 'none'})`);
        }
        return problems;
      }),
  );
}

/**
 * The registry's signatures of all packages in a folder, and the statements of those that were published with provenance.
 * Needs a registry that signs, and the internet: npm fetches the keys to verify with.
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
