/** The command line: parses the arguments, asks for missing ones, and prints the result. */

import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { createDriver, CreateDriverError } from './create.js';
import { FRAMEWORKS, isFramework, type Framework } from './frameworks.js';
import { namesOf } from './names.js';

/** Input and output of the program. */
export interface Terminal {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
  /** Asks a question; undefined without a terminal. Resolves with undefined if the terminal was closed. */
  readonly ask: ((question: string) => Promise<string | undefined>) | undefined;
}

/** Exit code of the process: 0 success, 1 failure, 2 wrong usage. */
export type ExitCode = 0 | 1 | 2;

const HELP = `Usage: npm create @nodepool/driver NAME -- [options]
       pnpm create @nodepool/driver NAME [options]

Creates a folder with a working driver for Nodepool. NAME is its name in configurations, e.g. my-cloud.

  --framework FRAMEWORK  simple or state-machine; asked for on a terminal if missing
  --package PACKAGE      npm package (default: nodepool-driver-NAME)
  --folder FOLDER        folder to create (default: nodepool-driver-NAME)
  --version              print the version
  -h, --help             print this help

Frameworks:
${Object.entries(FRAMEWORKS)
  .map(([name, when]) => `  ${name.padEnd(15)}${when}\n`)
  .join('')}
Example:
  $ npm create @nodepool/driver my-cloud -- --framework simple
`;

/** An error in the command line; the message explains the correct usage. */
class UsageError extends Error {}

interface Wanted {
  readonly name: string;
  readonly framework: Framework | undefined;
  readonly package: string | undefined;
  readonly folder: string | undefined;
}

/** Runs the program and resolves with the exit code. Never rejects because of user errors. */
export async function run(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  try {
    const wanted = read(args);
    if (wanted === 'help') terminal.print(HELP);
    else if (wanted === 'version') terminal.print(`${await version()}\n`);
    else await make(wanted, terminal);
    return 0;
  } catch (error) {
    if (error instanceof CreateDriverError) {
      terminal.printError(`${error.message}\n`);
      return 1;
    }
    if (!(error instanceof UsageError)) throw error;
    terminal.printError(`${error.message}\nSee --help.\n`);
    return 2;
  }
}

function read(args: readonly string[]): Wanted | 'help' | 'version' {
  const { values, positionals } = parsed(args);
  if (values.help === true) return 'help';
  if (values.version === true) return 'version';
  const [name, ...more] = positionals;
  if (name === undefined) throw new UsageError('Give the NAME of the driver, e.g. my-cloud');
  if (more.length > 0) {
    // Without "--", npm takes the options for its own, and passes on only their values.
    throw new UsageError(`Give one NAME only; unexpected: ${more.join(' ')}. With npm, write "--" before the options`);
  }
  const { framework } = values;
  if (framework !== undefined && !isFramework(framework)) {
    throw new UsageError(`There is no framework "${framework}"; there are: ${Object.keys(FRAMEWORKS).join(', ')}`);
  }
  return { name, framework, package: values.package, folder: values.folder };
}

function parsed(args: readonly string[]): ReturnType<typeof parse> {
  try {
    return parse(args);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      framework: { type: 'string' },
      package: { type: 'string' },
      folder: { type: 'string' },
      version: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
}

async function make(wanted: Wanted, terminal: Terminal): Promise<void> {
  const names = namesOrUsage(wanted);
  const framework = wanted.framework ?? (await askForFramework(terminal));
  const folder = wanted.folder ?? `nodepool-driver-${names.driver}`;
  const created = await createDriver({ names, framework, folder });
  terminal.print(`Made ${created.folder}: ${created.files.length} files, framework ${framework}.\n`);
  const fromHere = relative(process.cwd(), created.folder);
  terminal.print(nextSteps(fromHere.startsWith('..') ? created.folder : fromHere));
}

function namesOrUsage({ name, package: packageName }: Wanted): ReturnType<typeof namesOf> {
  try {
    return namesOf(name, packageName);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function askForFramework({ ask, print }: Terminal): Promise<Framework> {
  const known = Object.keys(FRAMEWORKS);
  const remedy = `Which framework? Give --framework ${known.join(' or --framework ')}`;
  if (ask === undefined) throw new UsageError(remedy);
  for (const [name, when] of Object.entries(FRAMEWORKS)) print(`  ${name}: ${when}\n`);
  for (;;) {
    const answer = (await ask(`Which framework? [${known[0] ?? ''}] `))?.trim();
    if (answer === undefined) throw new UsageError(`\n${remedy}`);
    const chosen = answer === '' ? known[0] : answer;
    if (chosen !== undefined && isFramework(chosen)) return chosen;
    print(`There is no framework "${answer}".\n`);
  }
}

function nextSteps(folder: string): string {
  return `
Next:

  cd ${folder}
  npm install
  npm test             run the driver contract against the sample cloud of the template
  npm run lint
  npm run launcher     a launcher with this driver; needs a ZooKeeper at 127.0.0.1:2181, see nodepool.yaml

Then read README.md, which describes what to change, in order.
`;
}

async function version(): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(__dirname, '..', 'package.json'), 'utf8'));
  const found =
    typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : undefined;
  return String(found);
}
