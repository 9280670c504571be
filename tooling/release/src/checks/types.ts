/** Checks that editors and compilers find the right types in both module systems. */

import { readFile } from 'node:fs/promises';
import { isJsonObject, type JsonObject } from '@nodepool/core';
import { findings, type Finding } from '../finding.js';
import type { PackedPackage } from '../pack.js';

/**
 * Findings to ignore in drivers. A CommonJS driver may export itself as `default`, because only the launcher loads it
 * and supports that.
 */
const IGNORED_IN_DRIVERS = new Set(['CJS_WITH_ESMODULE_DEFAULT_EXPORT', 'CJSOnlyExportsDefault']);

/** Runs `publint`, which checks package.json against the files. */
export async function checkPackaging({
  folder,
  manifest,
}: Pick<PackedPackage, 'folder' | 'manifest'>): Promise<Finding[]> {
  const { publint } = await import('publint');
  const { formatMessage } = await import('publint/utils');
  const { messages, pkg } = await publint({ pkgDir: folder, pack: false, level: 'warning', strict: true });
  return findings(
    'publint',
    messages
      // Only the package itself loads what its `imports` name.
      .filter(({ code, path }) => counts(code, manifest) && path[0] !== 'imports')
      .map((message) => formatMessage(message, pkg, { color: false }) ?? message.code),
  );
}

/**
 * Runs `arethetypeswrong`, which checks the types in every kind of module resolution. The oldest kind, `node10`, does
 * not know `exports` and thus finds only the main entry.
 */
export async function checkTypes({
  tarball,
  manifest,
}: Pick<PackedPackage, 'tarball' | 'manifest'>): Promise<Finding[]> {
  const { checkPackage, createPackageFromTarballData } = await import('@arethetypeswrong/core');
  const { problemKindInfo } = await import('@arethetypeswrong/core/problems');
  const result = await checkPackage(createPackageFromTarballData(await readFile(tarball)));
  if (result.types === false) return findings('types', ['the package has no types']);
  const problems = result.problems.filter(
    (problem) =>
      counts(problem.kind, manifest) &&
      !(problem.kind === 'NoResolution' && problem.resolutionKind === 'node10' && problem.entrypoint !== '.'),
  );
  return findings(
    'types',
    problems.map((problem) => `${problemKindInfo[problem.kind].shortDescription}: ${JSON.stringify(problem)}`),
  );
}

function counts(code: string, manifest: JsonObject): boolean {
  return !(isJsonObject(manifest['nodepool']) && IGNORED_IN_DRIVERS.has(code));
}
