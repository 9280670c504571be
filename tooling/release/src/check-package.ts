/** Runs all checks of a package. */

import { join } from 'node:path';
import { writeBill } from './bill-of-materials.js';
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

/** Results of a package's checks. */
export interface PackageReport {
  readonly packed: PackedPackage;
  readonly findings: readonly Finding[];
  /** Number of packages in its installation; undefined if it was not installed. */
  readonly installed: number | undefined;
}

export interface CheckOptions {
  /** Folder for the installation. */
  readonly scratch: string;
  /** Also verifies the registry's signatures, see `checkSignatures`. */
  readonly signatures: boolean;
  /** Folder for the bill of materials of the installation; undefined for none. */
  readonly sbom: string | undefined;
}

/** Runs the checks that only require the packed package. */
export async function checkPacked(packed: PackedPackage, rules: ManifestRules): Promise<Finding[]> {
  const { manifest, source } = packed;
  return [
    ...checkManifest({ manifest, directory: source.directory }, rules),
    ...(await checkFiles(packed)),
    // Links cannot be completed without the repository's URL.
    ...(rules.repository === undefined ? [] : await checkLinks(packed)),
  ];
}

/**
 * Runs all checks. `withNeeds` contains the package and its workspace dependencies, packed; they are installed in a
 * folder below `scratch`.
 */
export async function checkPackage(
  packed: PackedPackage,
  withNeeds: readonly PackedPackage[],
  rules: ManifestRules,
  { scratch, signatures, sbom }: CheckOptions,
): Promise<PackageReport> {
  const found = [
    ...(await checkPacked(packed, rules)),
    ...(await checkPackaging(packed)),
    ...(await checkTypes(packed)),
  ];
  const short = packed.source.name.replace('@', '').replace('/', '-');
  const folder = join(scratch, `alone-${short}`);
  try {
    const { packages } = await installPacked(withNeeds, folder);
    found.push(...checkLicences(packages), ...checkInstallScripts(packages), ...checkOrigins(packages));
    found.push(...checkEngines(packages));
    if (sbom !== undefined) await writeBill(folder, withNeeds, join(sbom, `${short}.cdx.json`));
    if (signatures) found.push(...(await checkSignatures(folder)));
    found.push(...(await checkExports(packed.source, folder)), ...(await checkSmoke(packed.source, folder)));
    return { packed, findings: found, installed: packages.length };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { packed, findings: [...found, { check: 'installation', message }], installed: undefined };
  }
}
