/** Checks that every package of an installation supports our Node.js versions. */

import { objectAt, stringAt } from '@nodepool/core';
import { satisfies } from 'semver';
import { findings, type Finding } from '../finding.js';
import type { InstalledPackage } from './licences.js';

/** The oldest version that our packages' `engines` allows, and the first version of each later LTS line. */
const SUPPORTED_NODE: readonly string[] = ['22.12.0', '24.11.0', '26.0.0'];

/**
 * Reports packages whose `engines` exclude a supported version; npm refuses such an installation with `engine-strict`.
 */
export function checkEngines(installed: readonly InstalledPackage[]): Finding[] {
  return findings(
    'engines',
    installed.flatMap(({ name, version, manifest }) => {
      const range = stringAt(objectAt(manifest, 'engines') ?? {}, 'node');
      const refused = range === undefined ? [] : SUPPORTED_NODE.filter((node) => !satisfies(node, range));
      return refused.length === 0
        ? []
        : [`${name}@${version} requires Node.js ${range}, which excludes ${refused.join(', ')}`];
    }),
  );
}
