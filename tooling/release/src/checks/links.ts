/** Checks that each link in packed pages leads to a packed file or is absolute. */

import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { findings, type Finding } from '../finding.js';
import type { PackedPackage } from '../pack.js';

const PAGE = /^(README|CHANGELOG)\.md$/;
const RELATIVE_LINK = /\]\((?![a-z]+:|#)([^)#\s]+)/g;

export async function checkLinks({ folder, files }: Pick<PackedPackage, 'folder' | 'files'>): Promise<Finding[]> {
  const problems = await Promise.all(
    files
      .filter((file) => PAGE.test(file))
      .map(async (page) => {
        const text = await readFile(join(folder, page), 'utf8');
        return [...text.matchAll(RELATIVE_LINK)]
          .map(([, target = '']) => target)
          .filter((target) => !files.includes(posix.normalize(target)))
          .map(
            (target) => `${page} links to ${target}, which is not packed: pnpm release:repository makes it absolute`,
          );
      }),
  );
  return findings('links', problems.flat());
}
