import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isJsonObject, errorCodeOf, type Driver } from '@nodepool/core';
import { importEntry, type PackageInfo } from './packages.js';

/** Error codes of `require` for a package that only `import` can load. */
const IMPORT_ONLY_CODES = new Set(['ERR_REQUIRE_ESM', 'ERR_REQUIRE_ASYNC_MODULE', 'ERR_PACKAGE_PATH_NOT_EXPORTED']);

/** Loads the module. Rejects with any error that its code throws. */
export async function loadModule(found: PackageInfo): Promise<unknown> {
  const require = createRequire(join(found.folder, 'package.json'));
  try {
    // Loaded by name, so that `exports` applies; a package without `exports` is loaded by its folder.
    const loaded: unknown = require(found.manifest['exports'] === undefined ? found.folder : found.name);
    return loaded;
  } catch (error) {
    if (!isImportOnly(error)) throw error;
    const entry = importEntry(found.manifest);
    if (entry === undefined) throw error;
    return await import(pathToFileURL(join(found.folder, entry)).href);
  }
}

/**
 * Returns the driver that a module exports under `exportName`, or as `default` or `driver` if that is undefined.
 * Returns undefined if the export is not a driver.
 */
export function exportedDriver(module: unknown, exportName: string | undefined): Driver | undefined {
  // `import` of a CommonJS module puts its exports into `default`, which may have a `default` of its own.
  const candidates = [module, exportOf(module, 'default'), exportOf(exportOf(module, 'default'), 'default')];
  const drivers = candidates.flatMap((each) =>
    exportName === undefined ? [each, exportOf(each, 'driver')] : [exportOf(each, exportName)],
  );
  return drivers.find(isDriver);
}

function exportOf(module: unknown, name: string): unknown {
  return typeof module === 'object' && module !== null && name in module
    ? (module as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

function isDriver(value: unknown): value is Driver {
  const name = exportOf(value, 'name');
  return (
    typeof name === 'string' &&
    name !== '' &&
    isJsonObject(exportOf(value, 'schema')) &&
    typeof exportOf(value, 'getProviderConfig') === 'function' &&
    typeof exportOf(value, 'getProvider') === 'function'
  );
}

function isImportOnly(error: unknown): boolean {
  return IMPORT_ONLY_CODES.has(errorCodeOf(error) ?? '');
}
