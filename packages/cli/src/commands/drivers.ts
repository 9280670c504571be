/** `nodepool drivers`: the installed driver packages and the providers that use them. */

import { DRIVER_API } from '@nodepool/core';
import { createRecordList, type ListColumn } from '@nodepool/store';
import type { InstalledDriver, NodepoolConfig } from '@nodepool/config';
import type { ConsoleContext } from '../command-context.js';
import { printSelected, type ListOptions } from '../lists/list-command.js';

interface DriverRow {
  readonly name: string;
  readonly package: string | null;
  readonly version: string | null;
  readonly api: number | null;
  readonly providers: readonly string[];
  readonly error: string | null;
}

const COLUMNS: readonly ListColumn<DriverRow>[] = [
  { field: 'name', header: 'Driver', value: (row) => row.name },
  { field: 'package', header: 'Package', value: (row) => row.package },
  { field: 'version', header: 'Version', value: (row) => row.version },
  { field: 'api', header: `API (here: ${DRIVER_API})`, value: (row) => row.api },
  { field: 'providers', header: 'Providers', value: (row) => row.providers },
  { field: 'error', header: 'Error', value: (row) => row.error },
];

/** Lists the installed drivers, and the configured drivers that are not available. */
export function drivers(
  { out }: ConsoleContext,
  installed: readonly InstalledDriver[],
  config: Pick<NodepoolConfig, 'providers' | 'brokenProviders'> | undefined,
  options: ListOptions,
): void {
  const users = providersByDriver(config);
  const rows: DriverRow[] = installed.map((driver) => {
    const { configNames } = driver;
    const providers = configNames.flatMap((name) => users.get(name)?.providers ?? []);
    for (const name of configNames) users.delete(name);
    const { name, version, api = null, error, warnings } = driver;
    const problem = error?.message ?? (warnings.length > 0 ? warnings.join('; ') : null);
    return { name, package: driver.package, version, api, providers, error: problem };
  });
  for (const [name, { providers, reason }] of users) {
    rows.push({
      name,
      package: null,
      version: null,
      api: null,
      providers,
      error: reason ?? 'not found among the installed packages',
    });
  }
  const list = createRecordList(COLUMNS, 'all', rows);
  printSelected(out, list, { name: ['name'], filters: { provider: 'providers' } }, options);
}

interface DriverUse {
  readonly providers: string[];
  reason: string | undefined;
}

function providersByDriver(
  config: Pick<NodepoolConfig, 'providers' | 'brokenProviders'> | undefined,
): Map<string, DriverUse> {
  const users = new Map<string, DriverUse>();
  const use = (driver: string, provider: string, reason?: string): void => {
    const known = users.get(driver) ?? { providers: [], reason };
    known.providers.push(provider);
    users.set(driver, known);
  };
  for (const provider of config?.providers.values() ?? []) use(provider.driver, provider.name);
  for (const [name, { driver, reason }] of config?.brokenProviders ?? []) use(driver, name, reason);
  return users;
}
