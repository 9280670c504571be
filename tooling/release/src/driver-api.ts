/** The members of the driver API, one per line, as the reviewed list of each version records them. */

import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DRIVER_API, stringAt } from '@nodepool/core';
import { major } from 'semver';
import ts from 'typescript';
import { reviewedNames } from './public-names.js';
import { packageNamed, type Workspace } from './workspace.js';

/**
 * Interfaces that a driver implements, and values that it returns: a new member of them must be optional. The programs
 * provide all others.
 */
export const IMPLEMENTED_BY_DRIVERS: readonly string[] = [
  'Driver',
  'Provider',
  'NodeRequestHandler',
  'ImageManager',
  'ProviderConfig',
  'StateMachineDriver',
  'Adapter',
  'StateMachine',
  'SimpleTaskManagerDriver',
  'SimpleTaskManagerAdapter',
  'Instance',
  'Resource',
];

const OPTIONAL = /^\w+\.(?:readonly )?\w+\?/;

/** Returns the path of the list of the present version. */
export function driverApiFile({ root }: Workspace): string {
  return join(root, 'tooling', 'release', 'driver-api', `${DRIVER_API}.txt`);
}

/** Resolves with `Interface.member` and its type for each interface of core's driver API that core exports, sorted. */
export async function driverApiMembers(workspace: Workspace): Promise<string[]> {
  const core = packageNamed(workspace, 'core');
  const names = await reviewedNames(workspace, core);
  const exported = new Set([...names.matchAll(/^ {2}(\w+) \(type\)$/gm)].map(([, name]) => name));
  const files = ts.sys.readDirectory(join(core.folder, 'src', 'driver'), ['.ts']);
  const sources = files.map((file) => ts.createSourceFile(file, ts.sys.readFile(file) ?? '', ts.ScriptTarget.ES2022));
  return sources.flatMap((source) => membersIn(source, exported)).sort();
}

function membersIn(source: ts.SourceFile, exported: ReadonlySet<string | undefined>): string[] {
  return source.statements.flatMap((statement) => {
    if (!ts.isInterfaceDeclaration(statement)) return [];
    const { text } = statement.name;
    if (!exported.has(text)) return [];
    return statement.members.map(
      (member) => `${text}.${member.getText(source).replaceAll(/\s+/g, ' ').replace(/;$/, '')}`,
    );
  });
}

/** Returns the changes that break present drivers: members removed or changed, and new ones that are required. */
export function breakingChanges(recorded: readonly string[], present: readonly string[]): string[] {
  const removed = recorded.filter((line) => !present.includes(line)).map((line) => `removed or changed: ${line}`);
  const demanded = present
    .filter((line) => !recorded.includes(line) && !OPTIONAL.test(line))
    .filter((line) => IMPLEMENTED_BY_DRIVERS.includes(line.slice(0, line.indexOf('.'))))
    // A new interface has no implementation yet.
    .filter((line) => recorded.some((other) => other.startsWith(line.slice(0, line.indexOf('.') + 1))))
    .map((line) => `not optional, so that present drivers lack it: ${line}`);
  return [...removed, ...demanded];
}

/** Records the members. Rejects if drivers of this version would break, unless core 1.0.0 is still unpublished. */
export async function writeDriverApi(workspace: Workspace): Promise<void> {
  const file = driverApiFile(workspace);
  const present = await driverApiMembers(workspace);
  const breaking = existsSync(file) ? breakingChanges(await recordedDriverApi(workspace), present) : [];
  const version = stringAt(packageNamed(workspace, 'core').manifest, 'version') ?? '';
  if (breaking.length > 0 && major(version) > 0) {
    throw new Error(`version ${DRIVER_API} of the driver API is frozen (docs/releasing.md):\n${breaking.join('\n')}`);
  }
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${present.join('\n')}\n`);
}

/** Returns the recorded members of the present version. */
export async function recordedDriverApi(workspace: Workspace): Promise<string[]> {
  return (await readFile(driverApiFile(workspace), 'utf8')).trimEnd().split('\n');
}
