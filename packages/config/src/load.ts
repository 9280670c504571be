/** Reads `nodepool.yaml` and the secure file. Reports all problems in one run, or returns the configuration. */

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { defaultDriverFolders, discoverDriver, type DiscoverDriver } from './discovery/discovery.js';
import type { JsonObject } from '@nodepool/core';
import {
  entriesAt,
  errorCodeOf,
  fileFaultOf,
  isJsonObject,
  nextTurn,
  numberAt,
  objectAt,
  stringAt,
} from '@nodepool/core';
import type * as CompiledSchemas from './compiled-schemas.js';
import { loadDiskImages, mergeSecureEnvVars, nonEmpty } from './disk-images.js';
import { incompatibleKeys } from './compatible.js';
import type { ConfigDocument } from './document.js';
import { checkEmptyNumbers } from './empty-values.js';
import { loadFairShares } from './fair-shares.js';
import type { ConfigProblem } from './problems.js';
import { loadProviders } from './providers.js';
import { checkUniqueNames } from './references.js';
import { checkPortText } from './port.js';
import { loadReady, type Report } from './ready/load.js';
import { ProblemReport } from './report.js';
import { configSchema, secureSchema } from './schema.js';
import { SourceText, type Environment } from './source.js';
import { DEFAULT_MAX_IDLE_SECONDS, DEFAULT_MAX_WAIT_MS, type NodepoolConfig, type TopLabelConfig } from './types.js';
import { validatorOf, type Validator } from './validate.js';
import { parseYaml } from './yaml.js';
import { loadZooKeeper } from './zookeeper.js';

export interface LoadOptions {
  readonly file: string;
  readonly secureFile?: string | undefined;
  /** The variables that replace `%(NODEPOOL_XXX)` in the files. */
  readonly env: Environment;
  /** `optional` accepts a file without `zookeeper-servers`, to check it without its secure file. Default `required`. */
  readonly zookeeper?: 'required' | 'optional' | undefined;
  /**
   * If true, only the file decides: variables that are not set are warnings, their values are not checked, and missing
   * credentials are ignored. Default false.
   */
  readonly withoutEnvironment?: boolean | undefined;
  /** Folders to search for driver packages, first to last. Default: see `defaultDriverFolders`. */
  readonly driverFolders?: readonly string[] | undefined;
  /** If true, the result lists the keys that the Python Nodepool does not know. Default false. */
  readonly listIncompatible?: boolean | undefined;
  /** Default: `discoverDriver`. */
  readonly discoverDriver?: DiscoverDriver | undefined;
}

export type LoadResult =
  | {
      readonly ok: true;
      readonly config: NodepoolConfig;
      /** Problems that do not prevent the rest from working, e.g. drivers that cannot be loaded. */
      readonly warnings: readonly ConfigProblem[];
      /** Names of providers that cannot be served; each has a warning with the reason. */
      readonly unserved: ReadonlySet<string>;
      /** Keys and drivers that the Python Nodepool does not know; empty without `listIncompatible`. */
      readonly incompatible: readonly ConfigProblem[];
      readonly fingerprint: string;
    }
  | {
      readonly ok: false;
      readonly problems: readonly ConfigProblem[];
      readonly warnings: readonly ConfigProblem[];
      readonly fingerprint: string;
    };

const { checkConfig, checkSecure } = createRequire(__filename)('#compiled-schemas') as typeof CompiledSchemas;
const validateConfig = validatorOf(checkConfig);
const validateSecure = validatorOf(checkSecure);
const MAX_FILE_BYTES = 10 * 1024 * 1024;

/** Loads the configuration. Never rejects: faults of files are problems. Equal contents have equal `fingerprint`s. */
export async function loadConfig(options: LoadOptions): Promise<LoadResult> {
  return await loadTexts(await readTexts(options), options);
}

/** Loads the configuration as `loadConfig`. Resolves with undefined, parsing nothing, if its fingerprint is `known`. */
export async function loadChangedConfig(options: LoadOptions, known: string): Promise<LoadResult | undefined> {
  const texts = await readTexts(options);
  return texts.fingerprint === known ? undefined : await loadTexts(texts, options);
}

/** The contents of the files; undefined for unreadable ones. */
interface Texts {
  readonly main: Buffer | undefined;
  readonly secure: Buffer | undefined;
  readonly fingerprint: string;
  readonly report: ProblemReport;
}

/** The problems that reject the configuration, and those that do not. */
interface Reports {
  readonly report: ProblemReport;
  readonly warnings: ProblemReport;
}

async function readTexts({ file, secureFile }: LoadOptions): Promise<Texts> {
  const report = new ProblemReport();
  const [main, secure] = await Promise.all([
    readBytes(file, report, MISSING),
    secureFile === undefined ? undefined : readBytes(secureFile, report, MISSING_SECURE),
  ]);
  const hash = createHash('sha256');
  hash
    .update(main ?? '')
    .update('\0')
    .update(secure ?? '');
  return { main, secure, fingerprint: hash.digest('hex'), report };
}

async function loadTexts({ report, fingerprint, ...texts }: Texts, options: LoadOptions): Promise<LoadResult> {
  const warnings = new ProblemReport();
  const reports = { report, warnings };
  const main = await parse(texts.main, options.file, false, options, reports);
  const secure = await parse(texts.secure, options.secureFile ?? '', true, options, reports);
  if (main === undefined || (options.secureFile !== undefined && secure === undefined)) {
    return { ok: false, problems: report.list(), warnings: warnings.list(), fingerprint };
  }
  const { config, unserved } = await interpret(main, secure, options, reports);
  const incompatible = options.listIncompatible === true ? incompatibleKeys(main, config.loadedDrivers) : [];
  return report.size === 0
    ? { ok: true, config, warnings: warnings.list(), unserved, incompatible, fingerprint }
    : { ok: false, problems: report.list(), warnings: warnings.list(), fingerprint };
}

const MISSING = 'name another one with --config, or write a first one with `nodepool init`';
const MISSING_SECURE = 'name another one with --secure, or omit the option';

async function readBytes(file: string, report: ProblemReport, missing: string): Promise<Buffer | undefined> {
  try {
    const { size } = await stat(file);
    if (size <= MAX_FILE_BYTES) return await readFile(file);
    report.add(wholeFile(file, `a file of at most ${MAX_FILE_BYTES} bytes`, `${size} bytes`));
  } catch (error) {
    report.add(wholeFile(file, 'a file that can be read', ...unreadable(error, missing)));
  }
  return undefined;
}

/** Returns what was found instead of a readable file, and advice. */
function unreadable(error: unknown, missing: string): [found: string, hint?: string] {
  switch (errorCodeOf(error)) {
    case 'ENOENT':
      return ['no file', missing];
    case 'EACCES':
      return ['a file that this user may not read', 'permit it, or run the program as another user'];
    case 'EISDIR':
      return ['a folder', missing];
    default:
      return ['one that cannot', fileFaultOf(error)];
  }
}

function wholeFile(file: string, expected: string, found: string, hint?: string): ConfigProblem {
  return { file, line: 0, column: 0, path: '', expected, found, hint };
}

/** Returns the text. Returns undefined, after a problem, for another encoding, whose characters would be lost. */
function decode(bytes: Buffer, file: string, report: ProblemReport): string | undefined {
  if (isUtf8(bytes)) return bytes.toString('utf8');
  let start = 0;
  let line = 1;
  // No character contains the byte of a line break.
  for (let end = bytes.indexOf('\n'); end >= 0 && isUtf8(bytes.subarray(start, end)); line += 1) {
    start = end + 1;
    end = bytes.indexOf('\n', start);
  }
  const column = bytes.subarray(start).toString('utf8').indexOf('\ufffd') + 1;
  const expected = 'a file in the encoding UTF-8';
  report.add({ ...wholeFile(file, expected, 'a byte that is not part of a character'), line, column });
  return undefined;
}

async function parse(
  bytes: Buffer | undefined,
  file: string,
  secret: boolean,
  { env, withoutEnvironment }: LoadOptions,
  { report, warnings }: Reports,
): Promise<ConfigDocument | undefined> {
  const text = bytes && decode(bytes, file, report);
  if (text === undefined) return undefined;
  const result = await parseYaml(new SourceText(file, text, env, secret));
  for (const problem of result.problems) report.settle(problem);
  for (const problem of result.warnings) warnings.add(problem);
  for (const problem of result.missingVariables) {
    report.suppress(problem);
    (withoutEnvironment === true ? warnings : report).add(problem);
  }
  return result.document;
}

async function interpret(
  main: ConfigDocument,
  secure: ConfigDocument | undefined,
  options: LoadOptions,
  { report, warnings }: Reports,
): Promise<{ config: NodepoolConfig; unserved: ReadonlySet<string> }> {
  const unserved = new Set<string>();
  checkSchema(main, validateConfig, report);
  checkEmptyNumbers(main, configSchema, [], report);
  if (secure !== undefined) {
    checkSchema(secure, validateSecure, report);
    checkEmptyNumbers(secure, secureSchema, [], report);
  }
  await nextTurn();
  checkUniqueNames(main, report);
  const root = isJsonObject(main.value) ? main.value : {};
  const zookeeper = loadZooKeeper(main, secure, options.zookeeper !== 'optional', report);
  const diskImages = loadDiskImages(main, report);
  if (secure !== undefined) mergeSecureEnvVars(diskImages, secure, report);
  const labels = loadLabels(root, (path, problem) => report.at(main, path, problem));
  const drivers = new Map(
    entriesAt(root, 'drivers').map(({ name, section }) => [name, stringAt(section, 'package') ?? ''] as const),
  );
  const configFolder = dirname(resolve(options.file));
  const providers = await loadProviders({
    document: main,
    diskImages,
    labels: new Set(labels.keys()),
    report,
    warnings,
    unserved,
    withoutEnvironment: options.withoutEnvironment === true,
    discover: options.discoverDriver ?? discoverDriver,
    search: { aliases: drivers, configFolder, folders: options.driverFolders ?? defaultDriverFolders(configFolder) },
  });
  checkPortText(main, ['webapp', 'port'], report);
  const config: NodepoolConfig = {
    ...loadDaemonSettings(root),
    zookeeper,
    labels,
    diskImages,
    ...providers,
    unserved,
    tenantLimits: loadTenantLimits(root),
    fairShares: loadFairShares(root),
    drivers,
  };
  return { config, unserved };
}

function checkSchema(document: ConfigDocument, validate: Validator, report: ProblemReport): void {
  for (const { path, ...text } of validate(document.value)) report.at(document, path, text);
}

type DaemonSettings = Pick<
  NodepoolConfig,
  'webapp' | 'elementsDir' | 'imagesDir' | 'buildLogDir' | 'buildLogRetention' | 'maxHoldAgeMs'
>;

function loadDaemonSettings(root: JsonObject): DaemonSettings {
  const webapp = objectAt(root, 'webapp') ?? {};
  return {
    webapp: {
      port: numberAt(webapp, 'port') ?? 8005,
      listenAddress: stringAt(webapp, 'listen_address') ?? '0.0.0.0',
    },
    elementsDir: nonEmpty(stringAt(root, 'elements-dir')),
    imagesDir: nonEmpty(stringAt(root, 'images-dir')),
    buildLogDir: nonEmpty(stringAt(root, 'build-log-dir')) ?? '/var/log/nodepool/builds',
    buildLogRetention: numberAt(root, 'build-log-retention') ?? 7,
    maxHoldAgeMs: ageLimit(numberAt(root, 'max-hold-age') ?? 0),
  };
}

function loadLabels(root: JsonObject, report: Report): Map<string, TopLabelConfig> {
  const labels = new Map<string, TopLabelConfig>();
  for (const { index, name, section } of entriesAt(root, 'labels')) {
    if (name === '') continue;
    const ready = loadReady(section, (path, problem) => report(['labels', index, ...path], problem));
    labels.set(name, {
      name,
      minReady: numberAt(section, 'min-ready') ?? 0,
      ...(ready === undefined ? {} : { ready }),
      maxReadyAgeMs: ageLimit(numberAt(section, 'max-ready-age') ?? 0),
      maxAgeMs: ageLimit(numberAt(section, 'max-age') ?? 0),
      minRetentionMs: Math.max(0, numberAt(section, 'min-retention-time') ?? 0) * 1000,
      maxIdleMs: ageLimit(numberAt(section, 'max-idle-time') ?? DEFAULT_MAX_IDLE_SECONDS),
      maxWaitMs: waitLimit(numberAt(section, 'max-wait')),
    });
  }
  return labels;
}

function waitLimit(seconds: number | undefined): number {
  return seconds === undefined ? DEFAULT_MAX_WAIT_MS : ageLimit(seconds);
}

/** Converts seconds to milliseconds; 0 and less mean no limit. */
function ageLimit(seconds: number): number {
  return seconds <= 0 ? Infinity : seconds * 1000;
}

/** Resource names of the keys of the file. */
const RESOURCE_NAMES: Readonly<Record<string, string>> = {
  'max-servers': 'instances',
  'max-cores': 'cores',
  'max-ram': 'ram',
  'max-volumes': 'volumes',
  'max-volume-gb': 'volume-gb',
};

function loadTenantLimits(root: JsonObject): Map<string, Readonly<Record<string, number>>> {
  const tenants = new Map<string, Readonly<Record<string, number>>>();
  for (const { section } of entriesAt(root, 'tenant-resource-limits')) {
    const limits: Record<string, number> = {};
    for (const key of Object.keys(section)) {
      const limit = numberAt(section, key);
      if (key !== 'tenant-name' && limit !== undefined) limits[RESOURCE_NAMES[key] ?? key] = limit;
    }
    tenants.set(stringAt(section, 'tenant-name') ?? '', limits);
  }
  return tenants;
}
