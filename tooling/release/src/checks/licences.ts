/** Licences of what an installation brings along, and programs that it would run on the way. */

import { entriesAt, isJsonObject, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import satisfies from 'spdx-satisfies';
import { findings, type Finding } from '../finding.js';

/** Licences that let us publish under Apache-2.0 and ask nothing of our users but to keep the notices. */
export const FITTING_LICENCES: readonly string[] = [
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

/** Licences of packages whose manifest names none of the standard, as read in the files of exactly that version. */
const READ_LICENCES: Readonly<Record<string, string>> = {
  // "BSD" in the manifest; the file LICENSE has the three clauses.
  'url-template@2.0.8': 'BSD-3-Clause',
};

/**
 * Dependencies that have programs run at their installation, and why that is nothing to worry about. Everything works
 * when none of them is run.
 */
const EXPLAINED_SCRIPTS: Readonly<Record<string, string>> = {
  'cpu-features': 'optional, of ssh2: compiles a query for CPU features; ssh2 does without',
  ssh2: 'tries to compile faster ciphers; those of Node.js are used otherwise',
  'unix-dgram': 'optional, of hot-shots: compiles Unix datagram sockets, which we do not use',
  protobufjs: 'compares version numbers and prints a warning',
};

/** A package that was installed. */
export interface InstalledPackage {
  readonly name: string;
  readonly version: string;
  readonly manifest: JsonObject;
  /** Address of the archive, where npm has noted it. */
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
      const says = licence === undefined ? 'names no licence' : `has the licence ${licence}`;
      return [`${each.name}@${each.version} ${says}, and the list of those that go with Apache-2.0 has no such`];
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
      if (scripts.length === 0 || EXPLAINED_SCRIPTS[name] !== undefined) return [];
      return [`${name}@${version} runs "${scripts.join('", "')}" when it is installed, and nobody has said why`];
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
    return satisfies(licence, [...FITTING_LICENCES]);
  } catch {
    // Not an expression of the standard, e.g. "SEE LICENSE IN LICENSE": somebody has to look.
    return false;
  }
}
