/** All checks of one package, one after the other. */

import { join } from 'node:path';
import { checkEngines } from './checks/engines.js';
import { checkFiles } from './checks/files.js';
import { checkInstallScripts, checkLicences } from './checks/licences.js';
import { checkLinks } from './checks/links.js';
import { checkManifest, type ManifestRules } from './checks/manifest.js';
import { checkOrigins, checkSignatures } from './checks/provenance.js';
import { checkExports, checkSmoke } from './checks/smoke.js';
import { checkPackaging, checkTypes } from './checks/types.js';
import type { Finding } from './finding.js';
import { installPacked } from './installation.js';
import type { PackedPackage } from './pack.js';

/** What is known of a package once it was checked. */
export interface PackageReport {
  readonly packed: PackedPackage;
  readonly findings: readonly Finding[];
  /** Packages that an installation of it consists of; undefined: it was not installed. */
  readonly installed: number | undefined;
}

/** The checks that need nothing but what was packed. */
export async function checkPacked(packed: PackedPackage, rules: ManifestRules): Promise<Finding[]> {
  const { manifest, source } = packed;
  return [
    ...checkManifest({ manifest, directory: source.directory }, rules),
    ...(await checkFiles(packed)),
    // Without an address of the repository, there is nothing that a link could be completed with.
    ...(rules.repository === undefined ? [] : await checkLinks(packed)),
  ];
}

/**
 * All checks. `withNeeds`: the package and those of this workspace that it needs, packed; it is installed from these in a
 * folder below `scratch`. `signatures`: also verify those of the registry, see `checkSignatures`.
 */
export async function checkPackage(
  packed: PackedPackage,
  withNeeds: readonly PackedPackage[],
  rules: ManifestRules,
  { scratch, signatures }: { readonly scratch: string; readonly signatures: boolean },
): Promise<PackageReport> {
  const found = [
    ...(await checkPacked(packed, rules)),
    ...(await checkPackaging(packed)),
    ...(await checkTypes(packed)),
  ];
  const folder = join(scratch, `alone-${packed.source.name.replaceAll(/[@/]/g, '-')}`);
  try {
    const { packages } = await installPacked(withNeeds, folder);
    found.push(...checkLicences(packages), ...checkInstallScripts(packages), ...checkOrigins(packages));
    found.push(...checkEngines(packages));
    if (signatures) found.push(...(await checkSignatures(folder)));
    found.push(...(await checkExports(packed.source, folder)), ...(await checkSmoke(packed.source, folder)));
    return { packed, findings: found, installed: packages.length };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { packed, findings: [...found, { check: 'installation', message }], installed: undefined };
  }
}
