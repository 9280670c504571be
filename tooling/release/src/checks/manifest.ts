/** Checks package.json as it would be published. */

import { declaredDrivers } from '@nodepool/config';
import { isJsonObject, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import { major, satisfies, subset, validRange } from 'semver';
import { findings, type Finding } from '../finding.js';
import { packageNamed, type Workspace } from '../workspace.js';

const CORE = '@nodepool/core';

/** Rules common to all manifests. */
export interface ManifestRules {
  readonly license: string;
  /** `engines.node`. */
  readonly node: string;
  /** URL of the source, e.g. `git+https://host/owner/name.git`; undefined skips the check. */
  readonly repository: string | undefined;
  /** Version of core in this workspace, for the drivers' peer ranges. */
  readonly coreVersion: string;
}

/** Returns the rules according to the workspace's root. */
export function manifestRules(workspace: Workspace, repository?: string): ManifestRules {
  return {
    license: stringAt(workspace.manifest, 'license') ?? '',
    node: stringAt(objectAt(workspace.manifest, 'engines') ?? {}, 'node') ?? '',
    repository,
    coreVersion: packageNamed(workspace, CORE).version,
  };
}

/** A package to check. */
export interface ManifestSubject {
  readonly manifest: JsonObject;
  /** Folder in the repository, e.g. `packages/core`. */
  readonly directory: string;
}

const DEPENDENCY_KINDS = ['dependencies', 'peerDependencies', 'optionalDependencies'] as const;
/** Scripts that would run when a user installs the package. */
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare'] as const;

export function checkManifest({ manifest, directory }: ManifestSubject, rules: ManifestRules): Finding[] {
  return findings('manifest', [
    ...fields(manifest, rules),
    ...repository(manifest, directory, rules.repository),
    ...scripts(manifest),
    ...ranges(manifest),
    ...driver(manifest),
    ...peerOfCore(manifest, rules.coreVersion),
  ]);
}

function fields(manifest: JsonObject, rules: ManifestRules): string[] {
  const problems: string[] = [];
  if (manifest['license'] !== rules.license) problems.push(`"license" must be "${rules.license}"`);
  if ((stringAt(manifest, 'description') ?? '') === '') problems.push('"description" is missing: registries show it');
  if (objectAt(manifest, 'engines')?.['node'] !== rules.node) {
    problems.push(`"engines" must be {"node": "${rules.node}"}, as in the root's package.json`);
  }
  const exported = objectAt(manifest, 'exports');
  if (exported?.['.'] === undefined) problems.push('"exports" must name the public entries, with "." among them');
  if (exported?.['./package.json'] === undefined) {
    problems.push('"exports" must have "./package.json": programs look up versions in it');
  }
  if (!Array.isArray(manifest['files'])) problems.push('"files" must name the published files');
  return problems;
}

/** Checks the `repository` field. Registries refuse provenance for a package that does not name its repository. */
function repository(manifest: JsonObject, directory: string, url: string | undefined): string[] {
  if (url === undefined) return [];
  const named = objectAt(manifest, 'repository');
  if (named?.['url'] === url && named['directory'] === directory) return [];
  return [
    `"repository" must name ${url} and the directory ${directory}, for provenance: pnpm release:repository ${url}`,
  ];
}

function scripts(manifest: JsonObject): string[] {
  const named = objectAt(manifest, 'scripts') ?? {};
  return INSTALL_SCRIPTS.filter((script) => script in named).map(
    (script) => `the script "${script}" would run at the installation of the package, which is not allowed`,
  );
}

function ranges(manifest: JsonObject): string[] {
  return DEPENDENCY_KINDS.flatMap((kind) =>
    Object.entries(objectAt(manifest, kind) ?? {})
      .filter(([, range]) => typeof range !== 'string' || validRange(range) === null)
      .map(
        ([name, range]) => `${kind}: "${name}": ${JSON.stringify(range)} is not a range that a registry can resolve`,
      ),
  );
}

/**
 * Checks a driver's dependency on core. It must use the launcher's copy, because two copies do not recognize each
 * other's errors and types.
 */
function driver(manifest: JsonObject): string[] {
  const { nodepool } = manifest;
  if (!isJsonObject(nodepool)) return [];
  const problems: string[] = [];
  if (declaredDrivers(manifest).length === 0 || !Number.isInteger(nodepool['api'])) {
    problems.push('"nodepool" must be {"driver": <name>, "api": <integer>}, or have {"drivers": {<name>: <export>}}');
  }
  if (objectAt(manifest, 'dependencies')?.[CORE] !== undefined) {
    problems.push(
      `${CORE} must be a peer dependency of a driver, not a dependency: otherwise two copies are installed`,
    );
  }
  if (objectAt(manifest, 'peerDependencies')?.[CORE] === undefined) {
    problems.push(`${CORE} must be in "peerDependencies" of a driver`);
  }
  return problems;
}

/**
 * Checks the peer range for core. A new version of core outside the range would force a new major version of the
 * package.
 */
function peerOfCore(manifest: JsonObject, coreVersion: string): string[] {
  const range = objectAt(manifest, 'peerDependencies')?.[CORE];
  if (typeof range !== 'string' || validRange(range) === null) return [];
  const problems: string[] = [];
  const present = major(coreVersion);
  const next = `${present + 1}.0.0`;
  if (!satisfies(coreVersion, range))
    problems.push(`the peer range ${CORE} ${range} refuses the current version ${coreVersion}`);
  if (!subset(`>=${coreVersion} <${next}-0`, range)) {
    problems.push(
      `the peer range ${CORE} ${range} refuses later versions of ${present}.x, and each of them would require a new major ` +
        `version of this package: write "workspace:^${present}", or the oldest ${present}.x that it needs`,
    );
  }
  if (satisfies(next, range)) {
    problems.push(`the peer range ${CORE} ${range} accepts ${next}, which has another driver API`);
  }
  return problems;
}
