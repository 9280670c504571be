/**
 * Generates the reference of the programs from their `--help` texts. Prints each option once: those of several daemons
 * or commands together, before those of the daemon or command.
 */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isJsonObject } from '@nodepool/core';
import { REPOSITORY } from '../repository.js';
import { parseHelp, type Entry, type Help } from './help.js';
import { block, code } from './markdown.js';

const run = promisify(execFile);

const TIMEOUT_MS = 60_000;
/** Number of daemons or commands from which the reference prints an equal option only once. */
const SEVERAL = 3;
/** Maximum length of a line in a block (characters). */
const COLUMNS = 100;

/** The package of each program, in the order on the page. */
const DAEMONS: readonly (readonly [program: string, packageFolder: string])[] = [
  ['nodepool-launcher', 'launcher'],
  ['nodepool-builder', 'builder'],
  ['nodepool-gateway', 'gateway'],
  ['nodepool-github', 'bridge-github'],
];
const OTHERS: readonly (readonly [program: string, packageFolder: string])[] = [
  ['nodepool', 'cli'],
  ['nodepool-gitlab', 'cli'],
  ['nodepool-garm', 'cli'],
  ['nodepool-slurm', 'cli'],
  ['nodepool-example-cloud', 'driver-example'],
  ['create-driver', 'create-driver'],
];

/** Rejects if a program is not built, or if a help text has no example. */
export async function programsReference(): Promise<string> {
  const [daemons, others] = await Promise.all([daemonSections(), Promise.all(OTHERS.map(programSections))]);
  return [...daemons, ...others.flat()].join('\n\n');
}

async function daemonSections(): Promise<readonly string[]> {
  const helps = await Promise.all(DAEMONS.map(([program, folder]) => helpOf(program, folder)));
  const options = shared(helps.map((help) => help.options));
  const signals = shared(helps.map((help) => help.signals));
  return [
    '## Options of all daemons',
    blockOf([], options, titled('Signals', signals)),
    ...helps.flatMap((help) => [
      `## ${code(help.program)}`,
      help.description,
      blockOf([], without(help.options, options), titled('Signals', without(help.signals, signals)), help.notes),
    ]),
  ];
}

async function programSections([program, folder]: readonly [string, string]): Promise<readonly string[]> {
  const help = await helpOf(program, folder);
  const commands: Help[] = [];
  // In sequence, so that tests that run at the same time are not slowed down.
  for (const { term } of help.commands) {
    const [command = ''] = term.split(' ');
    if (command !== 'help') commands.push(await helpOf(program, folder, command));
  }
  const options = shared(commands.map((command) => command.options));
  const parts = [
    `## ${code(program)}`,
    help.description,
    blockOf(usageOf(help), help.options, titled('Commands', commands.map(commandEntry)), help.notes),
  ];
  if (options.length > 0) {
    const where = `${code(`${program} COMMAND --help`)} shows which of them a command has:`;
    parts.push('### Options of several commands', where, blockOf([], options));
  }
  for (const command of commands) {
    const own = without(command.options, options);
    if (own.length === 0) continue;
    // The list of commands explains arguments without choices by their names, and those of commands without options.
    const hasChoices = command.commandArguments.some(({ text }) => text.includes('(choices: '));
    const entries = [...(hasChoices ? command.commandArguments : []), ...own];
    parts.push(`### ${code(command.program)}`, blockOf([], entries, command.notes));
  }
  return parts.filter((part) => part !== '');
}

/** Returns the usage unless it says nothing. */
function usageOf({ program, usage }: Help): readonly string[] {
  return [`${program} [options]`, `${program} [options] [command]`].includes(usage) ? [] : [usage];
}

function commandEntry({ usage, description }: Help): Entry {
  const [, ...words] = usage.replace(' [options]', '').split(' ');
  return { term: words.join(' '), text: description };
}

async function helpOf(program: string, folder: string, ...command: readonly string[]): Promise<Help> {
  const file = fileOf(program, folder);
  const { stdout } = await run(process.execPath, [file, ...command, '--help'], { timeout: TIMEOUT_MS });
  return parseHelp([program, ...command].join(' '), stdout);
}

function fileOf(program: string, folder: string): string {
  const packageFolder = join(REPOSITORY, 'packages', folder);
  const manifest: unknown = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'));
  const bin = isJsonObject(manifest) ? manifest['bin'] : undefined;
  const file = isJsonObject(bin) ? bin[program] : bin;
  if (typeof file !== 'string') throw new Error(`package ${folder} has no program ${program} in its package.json`);
  return join(packageFolder, file);
}

/** Returns the entries that several of the lists contain, each once. */
function shared(lists: readonly (readonly Entry[])[]): readonly Entry[] {
  const counts = new Map<string, { readonly entry: Entry; count: number }>();
  for (const entry of lists.flat()) {
    const found = counts.get(keyOf(entry)) ?? { entry, count: 0 };
    counts.set(keyOf(entry), { entry, count: found.count + 1 });
  }
  return [...counts.values()].filter(({ count }) => count >= SEVERAL).map(({ entry }) => entry);
}

function without(entries: readonly Entry[], removed: readonly Entry[]): readonly Entry[] {
  const keys = new Set(removed.map(keyOf));
  return entries.filter((entry) => !keys.has(keyOf(entry)));
}

function keyOf({ term, text }: Entry): string {
  return `${term}\n${text}`;
}

function titled(title: string, entries: readonly Entry[]): readonly string[] {
  return entries.length === 0 ? [] : [`${title}:`, ...entryLines(entries)];
}

/** Returns a block of the parts, with an empty line between them, or an empty text if all are empty. */
function blockOf(
  usage: readonly string[],
  entries: readonly Entry[],
  ...others: readonly (readonly string[])[]
): string {
  const parts = [usage, entryLines(entries), ...others].filter((lines) => lines.length > 0);
  return parts.length === 0 ? '' : block(parts.map((lines) => lines.join('\n')).join('\n\n'));
}

/** Returns the lines of a list with aligned and wrapped texts. */
function entryLines(entries: readonly Entry[]): readonly string[] {
  const width = Math.max(0, ...entries.map(({ term }) => term.length)) + 4;
  return entries.flatMap(({ term, text }) => {
    const lines = [''];
    for (const word of text.split(' ')) {
      const line = lines.at(-1) ?? '';
      if (line === '') lines[lines.length - 1] = word;
      else if (width + line.length + 1 + word.length <= COLUMNS) lines[lines.length - 1] = `${line} ${word}`;
      else lines.push(word);
    }
    return lines.map((line, index) => `${(index === 0 ? `  ${term}` : '').padEnd(width)}${line}`);
  });
}
