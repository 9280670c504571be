/** A daemon as a site runs it: the built program, with a configuration file, in a process of its own. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Program } from './process.js';
import { programPath, type ProgramName } from './programs.js';

export interface DaemonOptions {
  /** For messages and file names, e.g. `launcher-1`. Default: `launcher`, `builder`. */
  readonly name?: string;
  /** Gets the configuration file and the log. */
  readonly folder: string;
  /** Content of `nodepool.yaml`: its text, or a value (JSON is YAML). */
  readonly config: string | object;
  /** Further arguments of the program, e.g. `--no-webapp`. */
  readonly args?: readonly string[];
  /** Arguments of node itself, e.g. `--require` and a file. */
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Path of the configuration file of a daemon that is started with these options. */
export function configFileOf(options: { readonly folder: string; readonly name?: string }): string {
  return join(options.folder, `${options.name ?? 'launcher'}.yaml`);
}

/** Starts a launcher. Resolves once the process runs; it has not connected to anything then. */
export function startLauncher(options: DaemonOptions): Promise<Program> {
  return startDaemon('nodepool-launcher', { ...options, name: options.name ?? 'launcher' });
}

/** Starts a builder; as `startLauncher`. */
export function startBuilder(options: DaemonOptions): Promise<Program> {
  return startDaemon('nodepool-builder', { ...options, name: options.name ?? 'builder' });
}

/** Writes the configuration file of a daemon, which takes a changed one up while it runs. */
export async function writeDaemonConfig(options: {
  readonly folder: string;
  readonly name: string;
  readonly config: string | object;
}): Promise<void> {
  await mkdir(options.folder, { recursive: true });
  await writeFile(configFileOf(options), configText(options.config));
}

async function startDaemon(program: ProgramName, options: DaemonOptions & { readonly name: string }): Promise<Program> {
  const { name, folder, nodeArgs = [], args = [], env } = options;
  await writeDaemonConfig(options);
  return await Program.start({
    name,
    command: process.execPath,
    args: [...nodeArgs, programPath(program), '-c', configFileOf(options), ...args],
    logFile: join(folder, `${name}.log`),
    cwd: folder,
    ...(env === undefined ? {} : { env }),
  });
}

function configText(config: string | object): string {
  return typeof config === 'string' ? config : `${JSON.stringify(config, undefined, 2)}\n`;
}
