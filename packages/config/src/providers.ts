/** Loads the providers of a configuration, each by its driver. A failing driver affects its own providers only. */

import type { DiscoverDriver, DriverSearch } from './discovery/discovery.js';
import { packageOfDriver, type DriverPackage } from './discovery/load-driver.js';
import type { DiskImageConfig, Driver, Entry, JsonObject, ProviderConfig, ProviderConfigContext } from '@nodepool/core';
import { DEFAULT_DRIVER, entriesAt, isJsonObject, nextTurn, reasonOf, stringAt } from '@nodepool/core';
import type { ConfigDocument } from './document.js';
import { checkEmptyNumbers } from './empty-values.js';
import type { KeyPath } from './problems.js';
import { checkProviderReferences } from './references.js';
import type { ProblemReport, ProblemText } from './report.js';
import type { NodepoolConfig } from './types.js';
import { compileSchema, loadSchemaCompiler, type Validator } from './validate.js';

export interface ProvidersInput {
  readonly document: ConfigDocument;
  readonly diskImages: ReadonlyMap<string, DiskImageConfig>;
  readonly labels: ReadonlySet<string>;
  readonly report: ProblemReport;
  /** Receives failing drivers and providers that cannot be served. */
  readonly warnings: ProblemReport;
  /** Receives the names of providers that cannot be served. */
  readonly unserved: Set<string>;
  /** True to ignore what is missing outside the file, e.g. credentials. */
  readonly withoutEnvironment: boolean;
  readonly discover: DiscoverDriver;
  readonly search: DriverSearch;
}

type LoadedDriver =
  | { readonly ok: true; readonly driver: Driver; readonly validate: Validator }
  | { readonly ok: false; readonly reason: string };

export async function loadProviders(
  input: ProvidersInput,
): Promise<Pick<NodepoolConfig, 'providers' | 'brokenProviders' | 'loadedDrivers' | 'driverPackages'>> {
  const root = isJsonObject(input.document.value) ? input.document.value : {};
  const entries = entriesAt(root, 'providers');
  const names = [...new Set(entries.map((entry) => driverName(entry.section)))];
  const loaded: (readonly [string, LoadedDriver])[] = [];
  for (const name of names) loaded.push([name, await loadDriver(name, input)]);
  const drivers = new Map(loaded);
  const providers = new Map<string, ProviderConfig>();
  const brokenProviders = new Map<string, { driver: string; reason: string }>();
  for (const entry of entries) {
    await nextTurn();
    const name = driverName(entry.section);
    const made = makeProvider(entry, drivers.get(name), input);
    if (made.config !== undefined) providers.set(entry.name, made.config);
    if (made.broken === undefined) continue;
    brokenProviders.set(entry.name, { driver: name, reason: made.broken });
    input.unserved.add(entry.name);
    input.warnings.at(input.document, ['providers', entry.index, 'driver'], {
      expected: 'a driver that works',
      found: JSON.stringify(name),
      hint: `${made.broken}; this provider is not served until then`,
    });
  }
  const loadedDrivers = new Map(
    loaded.flatMap(([name, result]) => (result.ok ? [[name, result.driver] as const] : [])),
  );
  const driverPackages = packagesOf(loadedDrivers);
  warnOfDrivers(entries, driverPackages, input);
  return { providers, brokenProviders, loadedDrivers, driverPackages };
}

function packagesOf(drivers: ReadonlyMap<string, Driver>): Map<string, DriverPackage> {
  return new Map(
    [...drivers].flatMap(([name, driver]) => {
      const from = packageOfDriver(driver);
      return from === undefined ? [] : [[name, from] as const];
    }),
  );
}

/** Reports the warnings of each driver in use, at its first provider. */
function warnOfDrivers(
  entries: readonly Entry[],
  packages: ReadonlyMap<string, DriverPackage>,
  { document, warnings }: ProvidersInput,
): void {
  for (const [name, { warnings: texts }] of packages) {
    const user = entries.find((entry) => driverName(entry.section) === name);
    if (user === undefined) continue;
    for (const text of texts) {
      warnings.at(document, ['providers', user.index, 'driver'], {
        expected: 'a correctly installed driver',
        found: JSON.stringify(name),
        hint: text,
      });
    }
  }
}

function driverName(section: JsonObject): string {
  return stringAt(section, 'driver') ?? DEFAULT_DRIVER;
}

async function loadDriver(name: string, { discover, search }: ProvidersInput): Promise<LoadedDriver> {
  let driver: Driver;
  try {
    driver = await discover(name, search);
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  }
  // Each step takes tens of milliseconds, so that each has a turn of its own.
  await nextTurn();
  loadSchemaCompiler();
  await nextTurn();
  try {
    return { ok: true, driver, validate: compileSchema(driver.schema) };
  } catch (error) {
    return { ok: false, reason: `the schema of the driver is wrong: ${reasonOf(error)}` };
  }
}

interface CreatedProvider {
  readonly config?: ProviderConfig;
  readonly broken?: string;
}

function makeProvider(entry: Entry, loaded: LoadedDriver | undefined, input: ProvidersInput): CreatedProvider {
  const { document, report } = input;
  const reportProblem = (path: KeyPath, problem: ProblemText): void =>
    report.at(document, ['providers', entry.index, ...path], problem);
  const warn = (path: KeyPath, problem: ProblemText): void =>
    input.warnings.at(document, ['providers', entry.index, ...path], problem);
  checkProviderReferences(entry.section, input, reportProblem, warn);
  if (loaded === undefined) return {};
  if (!loaded.ok) return { broken: loaded.reason };
  const violations = loaded.validate(entry.section);
  for (const { path, ...text } of violations) reportProblem(path, text);
  checkEmptyNumbers(document, loaded.driver.schema, ['providers', entry.index], report);
  if (violations.length > 0) return {};
  const unserved = (path: KeyPath, reason: string): void => {
    input.unserved.add(entry.name);
    warn(path, {
      expected: 'a provider that can be served',
      found: null,
      hint: `${reason}; this provider is not served until then`,
    });
  };
  const context: ProviderConfigContext = {
    diskImages: input.diskImages,
    labels: input.labels,
    problem: (path, problem) => reportProblem(path, problem),
    ...(input.withoutEnvironment ? {} : { unserved }),
  };
  try {
    return { config: checkedConfig(loaded.driver.getProviderConfig(entry.section, context), entry.name) };
  } catch (error) {
    return { broken: `the driver failed on the provider's section: ${reasonOf(error)}` };
  }
}

/** Validates the result of a driver, which is third-party code. */
function checkedConfig(config: ProviderConfig, name: string): ProviderConfig {
  const given: unknown = config;
  const plausible =
    isJsonObject(given) && given['name'] === name && isMapLike(given['pools']) && isMapLike(given['diskImages']);
  if (!plausible)
    throw new TypeError('getProviderConfig returned something that is not the configuration of the provider');
  return config;
}

function isMapLike(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function';
}
