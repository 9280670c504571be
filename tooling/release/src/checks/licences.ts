/** Checks the licences of the packages in an installation, and their install scripts. */

import { entriesAt, isJsonObject, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import satisfies from 'spdx-satisfies';
import { findings, type Finding } from '../finding.js';

/** Licences that allow publishing under Apache-2.0 and only require users to keep the notices. */
const COMPATIBLE_LICENCES: readonly string[] = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'Python-2.0',
  'Unlicense',
  'Zlib',
];

/** Licences of packages without a standard licence in their manifest, as read in the files of this version. */
const READ_LICENCES: Readonly<Record<string, string>> = {
  // "BSD" in the manifest; the file LICENSE has the three clauses.
  'url-template@2.0.8': 'BSD-3-Clause',
};

/** An installed package. */
export interface InstalledPackage {
  readonly name: string;
  readonly version: string;
  readonly manifest: JsonObject;
  /** URL of the archive, if npm recorded it. */
  readonly resolved?: string | undefined;
  /** Checksum of the archive. */
  readonly integrity?: string | undefined;
}

export function checkLicences(installed: readonly InstalledPackage[]): Finding[] {
  return findings(
    'licences',
    installed.flatMap((each) => {
      const licence = licenceOf(each);
      if (licence !== undefined && fits(licence)) return [];
      const problem = licence === undefined ? 'names no licence' : `has the licence ${licence}`;
      return [
        `${each.name}@${each.version} ${problem}, which is not in the list of licences compatible with Apache-2.0`,
      ];
    }),
  );
}

export function checkInstallScripts(installed: readonly InstalledPackage[]): Finding[] {
  return findings(
    'install scripts',
    installed.flatMap(({ name, version, manifest }) => {
      const scripts = ['preinstall', 'install', 'postinstall'].filter(
        (script) => objectAt(manifest, 'scripts')?.[script] !== undefined,
      );
      if (scripts.length === 0) return [];
      return [
        `${name}@${version} runs "${scripts.join('", "')}" at its installation; use another package, or bundle it`,
      ];
    }),
  );
}

function licenceOf({ name, version, manifest }: InstalledPackage): string | undefined {
  const read = READ_LICENCES[`${name}@${version}`];
  if (read !== undefined) return read;
  const { license } = manifest;
  if (typeof license === 'string') return license;
  // Old forms of the field: {"type": "MIT", "url": …}, and a list `licenses` of such, to choose from.
  if (isJsonObject(license)) return stringAt(license, 'type');
  const choices = entriesAt(manifest, 'licenses').flatMap(({ section }) => stringAt(section, 'type') ?? []);
  return choices.length === 0 ? undefined : choices.join(' OR ');
}

function fits(licence: string): boolean {
  try {
    return satisfies(licence, [...COMPATIBLE_LICENCES]);
  } catch {
    // Not a standard expression, e.g. "SEE LICENSE IN LICENSE": it requires a manual review.
    return false;
  }
}
