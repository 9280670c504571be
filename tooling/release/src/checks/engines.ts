/** Every package of an installation runs on every version of Node.js that ours run on. */

import { objectAt, stringAt } from '@nodepool/core';
import { satisfies } from 'semver';
import { findings, type Finding } from '../finding.js';
import type { InstalledPackage } from './licences.js';

/** The oldest version that `engines` of our packages allows, and the first of each later line with long-term support. */
export const SUPPORTED_NODE: readonly string[] = ['20.18.1', '22.11.0', '24.11.0'];

/** npm refuses an installation with `engine-strict` when any package of the tree does not fit. */
export function checkEngines(installed: readonly InstalledPackage[]): Finding[] {
  return findings(
    'engines',
    installed.flatMap(({ name, version, manifest }) => {
      const range = stringAt(objectAt(manifest, 'engines') ?? {}, 'node');
      const refused = range === undefined ? [] : SUPPORTED_NODE.filter((node) => !satisfies(node, range));
      return refused.length === 0
        ? []
        : [`${name}@${version} wants Node.js ${range}, which leaves out ${refused.join(', ')}`];
    }),
  );
}
