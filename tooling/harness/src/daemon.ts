/** A daemon as in production: the built program in a separate process, with a configuration file. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Program, type ProgramOptions } from './process.js';
import { programPath, type ProgramName } from './programs.js';

export interface DaemonOptions extends Pick<ProgramOptions, 'env' | 'ownSession'> {
  /** For messages and file names, e.g. `launcher-1`. Default: `launcher`, `builder`. */
  readonly name?: string;
  /** Folder for the configuration file and the log. */
  readonly folder: string;
  /** Content of `nodepool.yaml`, as text or as a value (JSON is YAML). */
  readonly config: string | object;
  /** Additional arguments of the program, e.g. `--no-webapp`. */
  readonly args?: readonly string[];
  /** Arguments of Node.js, e.g. `--require` and a file. */
  readonly nodeArgs?: readonly string[];
}

/** Returns the path of the configuration file of a daemon with these options. */
export function configFileOf(options: { readonly folder: string; readonly name?: string }): string {
  return join(options.folder, `${options.name ?? 'launcher'}.yaml`);
}

/** Starts a launcher. Resolves when the process runs, before it has connected to ZooKeeper. */
export function startLauncher(options: DaemonOptions): Promise<Program> {
  return startDaemon('nodepool-launcher', { ...options, name: options.name ?? 'launcher' });
}

/** Starts a builder. Behaves like `startLauncher`. */
export function startBuilder(options: DaemonOptions): Promise<Program> {
  return startDaemon('nodepool-builder', { ...options, name: options.name ?? 'builder' });
}

/** Starts a bridge for GitHub Actions with these settings. Behaves like `startLauncher`. */
export async function startBridge(options: DaemonOptions & { readonly settings: object }): Promise<Program> {
  const { folder, settings, args = [], name = 'bridge' } = options;
  const file = join(folder, `${name}-github.yaml`);
  await mkdir(folder, { recursive: true });
  await writeFile(file, configText(settings));
  return await startDaemon('nodepool-github', { ...options, name, args: ['-g', file, ...args] });
}

/** Starts a gateway with these settings. Behaves like `startLauncher`. */
export async function startGateway(options: DaemonOptions & { readonly settings: object }): Promise<Program> {
  const { folder, settings, args = [], name = 'gateway' } = options;
  const file = join(folder, `${name}-settings.yaml`);
  await mkdir(folder, { recursive: true });
  await writeFile(file, configText(settings));
  return await startDaemon('nodepool-gateway', { ...options, name, args: ['-g', file, ...args] });
}

/** Writes the configuration file of a daemon, which reloads it while running. */
export async function writeDaemonConfig(options: {
  readonly folder: string;
  readonly name: string;
  readonly config: string | object;
}): Promise<void> {
  await mkdir(options.folder, { recursive: true });
  await writeFile(configFileOf(options), configText(options.config));
}

async function startDaemon(program: ProgramName, options: DaemonOptions & { readonly name: string }): Promise<Program> {
  const { name, folder, nodeArgs = [], args = [], env, ownSession } = options;
  await writeDaemonConfig(options);
  return await Program.start({
    name,
    command: process.execPath,
    args: [...nodeArgs, programPath(program), '-c', configFileOf(options), ...args],
    logFile: join(folder, `${name}.log`),
    cwd: folder,
    ...(env === undefined ? {} : { env }),
    ...(ownSession === undefined ? {} : { ownSession }),
  });
}

function configText(config: string | object): string {
  return typeof config === 'string' ? config : `${JSON.stringify(config, undefined, 2)}\n`;
}
