import { dirname, resolve } from 'node:path';
import { defaultDriverFolders, formatProblem, listInstalledDrivers, type NodepoolConfig } from '@nodepool/config';
import { drivers } from './commands/drivers.js';
import type { ListOptions } from './lists/list-command.js';
import { readConfig } from './open.js';
import type { CommonOptions, ProcessIo } from './process-io.js';

/** Returns the paths that providers name as drivers, each as its own alias, so that the list can match them. */
function pathsIn(config: NodepoolConfig | undefined): readonly (readonly [string, string])[] {
  if (config === undefined) return [];
  const users = [...config.providers.values(), ...config.brokenProviders.values()];
  return users.flatMap(({ driver }) => (/^(\.{0,2})\//.test(driver) ? [[driver, driver] as const] : []));
}

/** Lists the installed drivers, even without a usable configuration. */
export async function runDrivers(options: CommonOptions, io: ProcessIo, list: ListOptions): Promise<void> {
  const result = await readConfig(options, io);
  if (!result.ok) {
    io.out.note('the configuration cannot be used, so the providers of the drivers are unknown:');
    for (const problem of result.problems) io.out.note(`  ${formatProblem(problem)}`);
  }
  const config = result.ok ? result.config : undefined;
  const configFolder = dirname(resolve(options.config));
  const installed = await listInstalledDrivers({
    aliases: new Map([...pathsIn(config), ...(config?.drivers ?? [])]),
    configFolder,
    folders: defaultDriverFolders(configFolder),
  });
  drivers(io, installed, config, list);
}
