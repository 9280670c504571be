/** A launcher as a site runs it: the built program, with a configuration file, in a process of its own. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Program } from './process.js';
import { programPath } from './programs.js';

export interface LauncherOptions {
  /** For messages and file names, e.g. `launcher-1`. Default `launcher`. */
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

/** Path of the configuration file of a launcher that is started with these options. */
export function configFileOf(options: { readonly folder: string; readonly name?: string }): string {
  return join(options.folder, `${options.name ?? 'launcher'}.yaml`);
}

/** Starts a launcher. Resolves once the process runs; it has not connected to anything then. */
export async function startLauncher(options: LauncherOptions): Promise<Program> {
  const name = options.name ?? 'launcher';
  const configFile = configFileOf(options);
  await mkdir(options.folder, { recursive: true });
  await writeFile(configFile, configText(options.config));
  return await Program.start({
    name,
    command: process.execPath,
    args: [...(options.nodeArgs ?? []), programPath('nodepool-launcher'), '-c', configFile, ...(options.args ?? [])],
    logFile: join(options.folder, `${name}.log`),
    cwd: options.folder,
    ...(options.env === undefined ? {} : { env: options.env }),
  });
}

function configText(config: string | object): string {
  return typeof config === 'string' ? config : `${JSON.stringify(config, undefined, 2)}\n`;
}
