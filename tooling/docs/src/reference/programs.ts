/**
 * Generates the reference of the programs by running the built programs with `--help`, also for each of their commands.
 */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isJsonObject } from '@nodepool/core';
import { REPOSITORY } from '../repository.js';
import { block, code } from './markdown.js';

const run = promisify(execFile);

const TIMEOUT_MS = 60_000;

/** The package of each program, in the order on the page. */
const PROGRAMS: readonly (readonly [program: string, packageFolder: string])[] = [
  ['nodepool-launcher', 'launcher'],
  ['nodepool-builder', 'builder'],
  ['nodepool-gateway', 'gateway'],
  ['nodepool-github', 'bridge-github'],
  ['nodepool', 'cli'],
  ['nodepool-gitlab', 'cli'],
  ['nodepool-garm', 'cli'],
  ['nodepool-slurm', 'cli'],
  ['nodepool-example-cloud', 'driver-example'],
  ['create-driver', 'create-driver'],
];

/** Rejects if a program is not built. */
export async function programsReference(): Promise<string> {
  const sections = await Promise.all(PROGRAMS.map(([program, folder]) => programSection(program, folder)));
  return sections.join('\n\n');
}

async function programSection(program: string, folder: string): Promise<string> {
  const file = fileOf(program, folder);
  const help = await helpOf(file, []);
  const parts = [`## ${code(program)}`, block(help)];
  // In sequence, so that tests that run at the same time are not slowed down.
  for (const command of commandsOf(help)) {
    parts.push(`### ${code(`${program} ${command}`)}`, block(await helpOf(file, [command])));
  }
  return parts.join('\n\n');
}

function fileOf(program: string, folder: string): string {
  const packageFolder = join(REPOSITORY, 'packages', folder);
  const manifest: unknown = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'));
  const bin = isJsonObject(manifest) ? manifest['bin'] : undefined;
  const file = isJsonObject(bin) ? bin[program] : bin;
  if (typeof file !== 'string') throw new Error(`package ${folder} has no program ${program} in its package.json`);
  return join(packageFolder, file);
}

async function helpOf(file: string, command: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [file, ...command, '--help'], { timeout: TIMEOUT_MS });
  return stdout;
}

/** Returns the names in commander's list of commands. */
function commandsOf(help: string): readonly string[] {
  const [, list = ''] = /^Commands:\n((?: {2}.*\n)+)/m.exec(help) ?? [];
  const names = [...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name);
  return names.filter((name) => name !== 'help');
}
