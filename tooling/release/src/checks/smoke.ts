/** Checks that an installed package works: its entries load, its programs respond, and a small example runs. */

import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { declaredDrivers, type DeclaredDriver } from '@nodepool/config';
import { isJsonObject, objectAt } from '@nodepool/core';
import { run } from '../command.js';
import { findings, type Finding } from '../finding.js';
import type { PublicPackage } from '../workspace.js';

/** Example programs, one for each library, which run where the library is installed. */
const SMOKE_TESTS = join(__dirname, '..', '..', 'smoke');
const ANSWER_TIMEOUT_MS = 60_000;

/** Loads every entry of `exports` with `require` and with `import`, which must have the same names. */
export async function checkExports(subject: PublicPackage, folder: string): Promise<Finding[]> {
  const entries = Object.keys(objectAt(subject.manifest, 'exports') ?? {}).filter((entry) => !entry.includes('*'));
  const problems: string[] = [];
  for (const entry of entries) {
    const specifier = entry === '.' ? subject.name : `${subject.name}/${entry.slice(2)}`;
    problems.push(...(await orProblem(() => loads(specifier, folder))));
  }
  return findings('exports', problems);
}

async function loads(specifier: string, folder: string): Promise<string[]> {
  const required = await namesOf(`require(${JSON.stringify(specifier)})`, folder);
  if (specifier.endsWith('.json')) return [];
  if (required.length === 0) return [`require("${specifier}") returns no names`];
  const imported = new Set(await namesOf(`await import(${JSON.stringify(specifier)})`, folder));
  const lost = required.filter((name) => !imported.has(name));
  return lost.length === 0 ? [] : [`import of "${specifier}" lacks ${lost.join(', ')}, which require returns`];
}

async function namesOf(expression: string, folder: string): Promise<string[]> {
  const script = `(async () => console.log(JSON.stringify(Object.keys(${expression}))))()`;
  const output = await run(process.execPath, ['-e', script], { cwd: folder, timeoutMs: ANSWER_TIMEOUT_MS });
  const names: unknown = JSON.parse(output);
  return Array.isArray(names) ? names.map(String) : [];
}

/** Runs the parts of a package that require no cloud or server. */
export async function checkSmoke(subject: PublicPackage, folder: string): Promise<Finding[]> {
  const problems: string[] = [];
  const programs = Object.keys(objectAt(subject.manifest, 'bin') ?? {});
  for (const program of programs) problems.push(...(await orProblem(() => answers(program, subject, folder))));
  const nodepool = subject.manifest['nodepool'];
  const own = join(SMOKE_TESTS, `${basename(subject.directory)}.cjs`);
  if (isJsonObject(nodepool)) {
    for (const driver of declaredDrivers(subject.manifest)) {
      problems.push(...(await orProblem(() => isDriver(subject.name, driver, folder))));
    }
  }
  if (existsSync(own)) problems.push(...(await orProblem(() => smokeTest(own, folder))));
  else if (programs.length === 0 && !isJsonObject(nodepool)) {
    problems.push(`there is no smoke test: write tooling/release/smoke/${basename(own)}`);
  }
  return findings('smoke', problems);
}

/** Checks that `--version` prints the package's version and `--help` its usage. */
async function answers(program: string, subject: PublicPackage, folder: string): Promise<string[]> {
  const command = join(folder, 'node_modules', '.bin', program);
  const options = { cwd: folder, timeoutMs: ANSWER_TIMEOUT_MS };
  const version = (await run(command, ['--version'], options)).trim();
  const help = await run(command, ['--help'], options);
  const problems: string[] = [];
  if (!version.split(/\s+/).includes(subject.version)) {
    problems.push(`${program} --version prints ${JSON.stringify(version)}, not ${subject.version}`);
  }
  if (!/usage:/i.test(help)) problems.push(`${program} --help does not print its usage`);
  return problems;
}

async function isDriver(name: string, declared: DeclaredDriver, folder: string): Promise<string[]> {
  const script = `
    const exported = require(${JSON.stringify(name)});
    const driver = ${declared.exportName === undefined ? 'exported.default ?? exported.driver' : `exported[${JSON.stringify(declared.exportName)}]`};
    console.log(JSON.stringify({ name: driver.name, schema: typeof driver.schema, make: typeof driver.getProviderConfig }));
  `;
  const says = await run(process.execPath, ['-e', script], { cwd: folder, timeoutMs: ANSWER_TIMEOUT_MS });
  const wanted = JSON.stringify({ name: declared.name, schema: 'object', make: 'function' });
  return says.trim() === wanted ? [] : [`a driver that ${name} exports is ${says.trim()} instead of ${wanted}`];
}

async function smokeTest(file: string, folder: string): Promise<string[]> {
  const copy = join(folder, basename(file));
  await copyFile(file, copy);
  await run(process.execPath, [copy], { cwd: folder, timeoutMs: ANSWER_TIMEOUT_MS });
  return [];
}

async function orProblem(check: () => Promise<string[]>): Promise<string[]> {
  try {
    return await check();
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
