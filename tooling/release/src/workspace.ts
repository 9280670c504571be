/** The published packages of the workspace according to their package.json files. */

import { readdir, readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isJsonObject, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import { UsageError } from '@nodepool/harness';

export interface PublicPackage {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
  /** Folder relative to the root, e.g. `packages/core`. */
  readonly directory: string;
  readonly manifest: JsonObject;
  /** Names of this workspace's public packages that it requires, as dependencies or peers. */
  readonly needs: readonly string[];
}

export interface Workspace {
  readonly root: string;
  /** package.json of the root. */
  readonly manifest: JsonObject;
  /** Sorted, with dependencies before their dependents. */
  readonly packages: readonly PublicPackage[];
}

/** Folder of public packages; those below `tooling/` are private. */
const PUBLIC_FOLDER = 'packages';
/** Name of a program's command; `create-driver` is a tool of driver authors. */
const PROGRAM = /^nodepool(?:-|$)/;

/** Returns the root of the workspace that contains `start`. */
export function workspaceRoot(start: string = __dirname): string {
  for (let at = start; ; at = dirname(at)) {
    if (existsSync(join(at, 'pnpm-workspace.yaml'))) return at;
    if (dirname(at) === at)
      throw new Error(`${start} is not in a pnpm workspace: no folder above has a pnpm-workspace.yaml`);
  }
}

/** Reads the workspace. Rejects if a package.json cannot be read or has no name or version. */
export async function readWorkspace(root: string): Promise<Workspace> {
  const names = await readdir(join(root, PUBLIC_FOLDER));
  const found: Omit<PublicPackage, 'needs'>[] = [];
  for (const name of names.sort()) {
    const directory = `${PUBLIC_FOLDER}/${name}`;
    const folder = join(root, directory);
    // The folder of a removed package may still exist without a package.json.
    if (!existsSync(join(folder, 'package.json'))) continue;
    const manifest = await readManifest(folder);
    if (manifest['private'] === true) continue;
    found.push({ ...identityOf(manifest, folder), folder, directory, manifest });
  }
  const known = new Set(found.map((each) => each.name));
  const packages = found.map((each) => ({ ...each, needs: needsOf(each.manifest).filter((name) => known.has(name)) }));
  return { root, manifest: await readManifest(root), packages: inOrder(packages) };
}

/** Reads the package.json of a folder. */
export async function readManifest(folder: string): Promise<JsonObject> {
  const file = join(folder, 'package.json');
  const value: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (!isJsonObject(value)) throw new Error(`${file} contains no JSON object`);
  return value;
}

/** Returns the packages and their workspace dependencies, each after the packages that it needs. */
export function withNeeds(workspace: Workspace, ...names: readonly string[]): PublicPackage[] {
  const needed = new Set<string>();
  const add = (each: PublicPackage): void => {
    if (needed.has(each.name)) return;
    needed.add(each.name);
    for (const next of each.needs) add(packageNamed(workspace, next));
  };
  for (const name of names) add(packageNamed(workspace, name));
  return workspace.packages.filter((each) => needed.has(each.name));
}

/** Returns the names of the programs and the drivers, which a site installs. */
export function sitePackages({ packages }: Workspace): string[] {
  const isProgram = ({ manifest }: PublicPackage): boolean =>
    Object.keys(objectAt(manifest, 'bin') ?? {}).some((command) => PROGRAM.test(command));
  const isDriver = ({ manifest }: PublicPackage): boolean => objectAt(manifest, 'nodepool') !== undefined;
  return packages.filter((each) => isProgram(each) || isDriver(each)).map(({ name }) => name);
}

/** Returns the package. Throws a `UsageError` that lists all names if it does not exist. */
export function packageNamed(workspace: Workspace, name: string): PublicPackage {
  const found = workspace.packages.find((each) => each.name === name || each.name === `@nodepool/${name}`);
  if (found !== undefined) return found;
  const known = workspace.packages.map((each) => each.name).join(', ');
  throw new UsageError(`there is no public package ${name}; there are: ${known}`);
}

function identityOf(manifest: JsonObject, folder: string): { name: string; version: string } {
  const name = stringAt(manifest, 'name');
  const version = stringAt(manifest, 'version');
  if (name === undefined || version === undefined) throw new Error(`${folder}/package.json has no name or no version`);
  return { name, version };
}

function needsOf(manifest: JsonObject): string[] {
  return ['dependencies', 'peerDependencies'].flatMap((kind) => Object.keys(objectAt(manifest, kind) ?? {}));
}

function inOrder(packages: readonly PublicPackage[]): PublicPackage[] {
  const ordered = new Set<PublicPackage>();
  const add = (each: PublicPackage, above: readonly string[]): void => {
    if (above.includes(each.name))
      throw new Error(`packages depend on each other: ${[...above, each.name].join(' > ')}`);
    for (const name of each.needs) {
      const needed = packages.find((other) => other.name === name);
      if (needed !== undefined) add(needed, [...above, each.name]);
    }
    ordered.add(each);
  };
  for (const each of packages) add(each, []);
  return [...ordered];
}
