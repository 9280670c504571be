/** `nodepool init`: lists what a cloud has, with its driver, and writes a first configuration. Changes no cloud. */

import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import {
  defaultDriverFolders,
  discoverDriver,
  formatProblem,
  listInstalledDrivers,
  loadConfig,
  type DriverSearch,
  type LoadResult,
} from '@nodepool/config';
import {
  systemClock,
  systemRandom,
  type Driver,
  type JsonObject,
  type JsonValue,
  type Logger,
  type SiteChoice,
  type SiteDescription,
  type SiteGuide,
} from '@nodepool/core';
import type * as Yaml from 'yaml';
import { CommandError } from '../command-context.js';
import { answerTo, choose, settingsOf, type Asking } from '../init/answers.js';
import { documentText } from '../init/document.js';
import { withLog } from '../open.js';
import type { CommonOptions, ProcessIo } from '../process-io.js';
import { replaceFile } from '../replace-file.js';
import { withStartedProvider } from '../started-provider.js';

const load = createRequire(__filename);

const CLOUD_TIMEOUT_MS = 120_000;
const DEFAULT_SERVERS = 2;
const ZOOKEEPER_PORT = 2181;
/** Users of public images, by a word in the name of the image. */
const USERS: readonly (readonly [RegExp, string])[] = [
  [/\b(al20\d\d|amzn)/i, 'ec2-user'],
  [/debian/i, 'debian'],
  [/ubuntu/i, 'ubuntu'],
  [/centos/i, 'cloud-user'],
  [/fedora/i, 'fedora'],
  [/rocky/i, 'rocky'],
  [/alma/i, 'almalinux'],
];
const DEFAULT_USER = 'zuul';

export interface InitOptions extends Readonly<Partial<Record<'image' | 'machineType' | 'network' | 'zone', string>>> {
  readonly driver?: string;
  readonly name?: string;
  readonly label?: string;
  readonly username?: string;
  readonly maxServers?: number;
  readonly zookeeper?: string;
  readonly set?: Readonly<Record<string, string>>;
  readonly force: boolean;
}

/** Writes the file. Rejects with `CommandError`, writing nothing, if an answer is missing or the file exists. */
export async function init(common: CommonOptions, io: ProcessIo, options: InitOptions): Promise<void> {
  const { config: file } = common;
  const asking: Asking = { out: io.out, ask: io.ask, interrupted: io.interrupted };
  if (!options.force && (await exists(file))) {
    throw new CommandError(`${file} exists; --force replaces it, and --config names another file`);
  }
  const search = searchFor(file);
  const { name: driverName, driver, guide } = await guideFor(asking, search, options.driver);
  const settings = await settingsOf(asking, guide, options.set ?? {});
  const zookeeper = addressIn(
    await answerTo(asking, {
      ...(options.zookeeper === undefined ? {} : { given: options.zookeeper }),
      ...{ question: 'address of a ZooKeeper server', option: '--zookeeper HOST:PORT', fallback: '127.0.0.1' },
    }),
  );
  const name = options.name ?? driverName.replace(/^.*[/]/, '');
  const provider = (section: JsonObject): JsonObject => ({
    ...{ name, driver: driverName },
    ...section,
    ...otherKeys(options.set ?? {}, guide),
  });
  await withLog(common, async (log) => {
    const site = await lookInto(io, log, driver, search, provider(guide.section(settings)), file);
    const chosen = await choose(asking, guide, site, givenIn(options));
    const label = await labelOf(asking, options, site, chosen);
    const section = provider(guide.section(settings, { ...label, chosen }));
    const text = documentText({ zookeeper, label: label.name, provider: section, schema: driver.schema, site, chosen });
    const checked = await loadText(text, io, search, file);
    if (!checked.ok || checked.unserved.size > 0) throw refusalOf(checked);
    await replaceFile(file, text);
  });
  io.out.note(`Wrote ${file}. Next: start nodepool-launcher with it, then run "nodepool -c ${file} doctor"`);
}

interface GuidedDriver {
  readonly name: string;
  readonly driver: Driver;
  readonly guide: SiteGuide;
}

async function guideFor(asking: Asking, search: DriverSearch, given: string | undefined): Promise<GuidedDriver> {
  let wanted = given;
  if (wanted === undefined) {
    const installed = (await listInstalledDrivers(search)).filter(({ error }) => error === undefined);
    const names = installed.map(({ name }) => name);
    if (names.length === 0)
      throw new CommandError('no driver is installed; install one, e.g. @nodepool/driver-openstack');
    wanted = await answerTo(asking, {
      question: `driver (installed: ${names.join(', ')})`,
      option: '--driver',
      ...(names.length === 1 && names[0] !== undefined ? { fallback: names[0] } : {}),
    });
  }
  const driver = await discoverDriver(wanted, search);
  const { siteGuide: guide } = driver;
  if (guide === undefined) {
    throw new CommandError(
      `the driver ${wanted} has no first configuration; its page in the documentation has an example`,
    );
  }
  return { name: wanted, driver, guide };
}

/** Starts a provider without labels, and resolves with the lists of its cloud. */
async function lookInto(
  io: ProcessIo,
  log: Logger,
  driver: Driver,
  search: DriverSearch,
  section: JsonObject,
  file: string,
): Promise<SiteDescription> {
  const text = JSON.stringify({ 'zookeeper-servers': [{ host: 'localhost' }], providers: [section] });
  const loaded = await loadText(text, io, search, file);
  const config = loaded.ok && loaded.unserved.size === 0 ? [...loaded.config.providers.values()][0] : undefined;
  if (config === undefined) throw refusalOf(loaded);
  const provider = driver.getProvider(config);
  if (provider.describeSite === undefined) return {};
  const { clock = systemClock, random = systemRandom, interrupted } = io;
  io.out.note(`Looking into the cloud of driver ${driver.name} …`);
  return withStartedProvider({ clock, random, log, interrupted }, provider, CLOUD_TIMEOUT_MS, async (call) => {
    return (await provider.describeSite?.(call)) ?? {};
  });
}

async function labelOf(
  asking: Asking,
  { label, username, maxServers = DEFAULT_SERVERS }: InitOptions,
  site: SiteDescription,
  { image }: Readonly<Partial<Record<SiteChoice, string>>>,
): Promise<{ readonly name: string; readonly username: string; readonly maxServers: number }> {
  const name = await answerTo(asking, {
    ...(label === undefined ? {} : { given: label }),
    ...{ question: 'name of the label', option: '--label', fallback: 'default' },
  });
  const note = site.image?.options.find((option) => option.name === image)?.note ?? '';
  const fallback = USERS.find(([pattern]) => pattern.test(`${image ?? ''} ${note}`))?.[1] ?? DEFAULT_USER;
  const user = await answerTo(asking, {
    ...(username === undefined ? {} : { given: username }),
    ...{ question: 'user name for logins', option: '--username', fallback },
  });
  return { name, username: user, maxServers };
}

function givenIn({ image, machineType, network, zone }: InitOptions): Partial<Record<SiteChoice, string>> {
  return {
    ...(image === undefined ? {} : { image }),
    ...(machineType === undefined ? {} : { 'machine-type': machineType }),
    ...(network === undefined ? {} : { network }),
    ...(zone === undefined ? {} : { zone }),
  };
}

/** Returns the given keys that are no settings of the guide, e.g. `endpoint-url`, with their values as in YAML. */
function otherKeys(given: Readonly<Record<string, string>>, { settings }: SiteGuide): JsonObject {
  const { parse } = load('yaml') as typeof Yaml;
  const known = new Set(settings.map(({ key }) => key));
  const others = Object.entries(given).filter(([key]) => !known.has(key));
  return Object.fromEntries(others.map(([key, text]) => [key, parse(text) as JsonValue]));
}

function addressIn(text: string): { readonly host: string; readonly port: number } {
  const [, host = '', port] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(text) ?? [];
  if (host === '')
    throw new CommandError(`${JSON.stringify(text)} is no address of a server; expected HOST or HOST:PORT`);
  return { host: host.replace(/^\[|\]$/g, ''), port: port === undefined ? ZOOKEEPER_PORT : Number(port) };
}

function searchFor(file: string): DriverSearch {
  const configFolder = dirname(resolve(file));
  return { aliases: new Map(), configFolder, folders: defaultDriverFolders(configFolder) };
}

/** Loads a configuration that is not in its file yet. */
async function loadText(text: string, io: ProcessIo, search: DriverSearch, file: string): Promise<LoadResult> {
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-init-'));
  try {
    const draft = join(folder, 'nodepool.yaml');
    await writeFile(draft, text, { mode: 0o600 });
    const discover = (name: string): Promise<Driver> => discoverDriver(name, search);
    const result = await loadConfig({ file: draft, env: io.env, discoverDriver: discover });
    const named = <T extends { readonly file: string }>(problems: readonly T[]): T[] =>
      problems.map((problem) => ({ ...problem, file }));
    return result.ok
      ? { ...result, warnings: named(result.warnings) }
      : { ...result, problems: named(result.problems), warnings: named(result.warnings) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function refusalOf(result: LoadResult): CommandError {
  const problems = result.ok ? result.warnings : result.problems;
  const lines = problems.map((problem) => `  ${formatProblem({ ...problem, line: 0 })}`);
  return new CommandError(`nothing was written, because the configuration would be refused:\n${lines.join('\n')}`);
}

async function exists(file: string): Promise<boolean> {
  try {
    await access(file);
    return true;
  } catch {
    return false;
  }
}
