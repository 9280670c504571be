/** The rehearsal, from the first release of the packages to the upgrade of a site. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exampleConfig } from '@nodepool/harness';
import { pack } from '../pack.js';
import type { Progress } from '../progress.js';
import { readWorkspace, withNeeds } from '../workspace.js';
import { clearListCaches, release, releaseOne } from './publish.js';
import type { Registry } from './registry.js';
import { Site, type SharedZooKeeper, type PackageManager } from './site.js';

const LAUNCHER = '@nodepool/launcher';
const CLI = '@nodepool/cli';
const DRIVER = '@nodepool/driver-example';
const DRIVER_NAME = 'example';
const CONFIG = 'nodepool.yaml';
/** Version of a package that was never released. */
const UNRELEASED = '0.0.0';
const LABELS = ['debian', 'fedora'] as const;
const MANAGERS: readonly PackageManager[] = ['npm', 'pnpm'];
/** Time limit for a launcher's metrics (ms). */
const METRICS_MS = 15_000;

/** Resources of the rehearsal. */
export interface RehearsalContext {
  /** A copy of the checkout whose packages are released. */
  readonly checkout: string;
  /** Folder for sites. */
  readonly folder: string;
  readonly registry: Registry;
  readonly sharedZooKeeper: SharedZooKeeper;
  readonly progress: Progress;
}

/** Runs the rehearsal and rejects at the first failure. */
export async function rehearse(context: RehearsalContext): Promise<void> {
  await publishAll(context);
  for (const manager of MANAGERS) await runFromTarballs(context, manager);
  const sites: Site[] = [];
  for (const manager of MANAGERS) sites.push(await installSite(context, manager));
  try {
    const version = await publishDriver(context);
    for (const site of sites) await upgrade(context, site, version);
  } finally {
    for (const site of sites) await site.stop();
  }
  await startDriver(context, 'npm', 'state-machine');
  await startDriver(context, 'pnpm', 'simple');
}

async function publishAll({ checkout, registry, progress }: RehearsalContext): Promise<void> {
  progress.say('publishing all packages');
  const published = await release(checkout, registry);
  const { packages } = await readWorkspace(checkout);
  const missing = packages.filter(({ name }) => !published.has(name)).map(({ name }) => name);
  if (missing.length > 0) throw new Error(`some packages were not published: ${missing.join(', ')}`);
  progress.say(`published ${[...published].map(([name, version]) => `${name}@${version}`).join(', ')}`);
  const forgotten = [...published].filter(([, version]) => version === UNRELEASED).map(([name]) => name);
  if (forgotten.length > 0) progress.say(`no changeset gives a version to ${forgotten.join(', ')}: add one`);
}

/** Installs a launcher and a driver from files in an empty folder, as a site without a registry does. */
async function runFromTarballs(context: RehearsalContext, manager: PackageManager): Promise<void> {
  const { checkout, folder, registry, sharedZooKeeper, progress } = context;
  const workspace = await readWorkspace(checkout);
  const needed = new Set([LAUNCHER, DRIVER].flatMap((name) => withNeeds(workspace, name).map((each) => each.name)));
  const files: Record<string, string> = {};
  for (const each of workspace.packages.filter(({ name }) => needed.has(name))) {
    files[each.name] = `file:${(await pack(each, join(folder, 'packed', manager))).tarball}`;
  }
  const site = new Site(join(folder, `${manager}-from-tarballs`), manager, sharedZooKeeper, registry.env);
  // pnpm needs an explicit override to install the packages' own dependencies from files.
  await site.create(manager === 'pnpm' ? { pnpm: { overrides: files } } : {});
  const wanted = manager === 'pnpm' ? [LAUNCHER, DRIVER] : Object.keys(files);
  await site.install(...wanted.flatMap((name) => files[name] ?? []));
  try {
    await site.start(LABELS, CONFIG, (port) => config(sharedZooKeeper, port));
    await site.request(LABELS);
  } finally {
    await site.stop();
  }
  progress.say(`${manager}: a launcher and one driver from tarballs in an empty folder serve a request`);
}

/** Installs a site from the registry and leaves its launcher running. */
async function installSite(
  { folder, registry, sharedZooKeeper, progress }: RehearsalContext,
  manager: PackageManager,
): Promise<Site> {
  const site = new Site(join(folder, `${manager}-site`), manager, sharedZooKeeper, registry.env);
  await site.create();
  await site.install(LAUNCHER, DRIVER, CLI);
  await site.start(LABELS, CONFIG, (port) => config(sharedZooKeeper, port));
  const { version, error } = await driverOf(site);
  if (error !== null) throw new Error(`${manager}: nodepool drivers reports: ${error}`);
  await site.request(LABELS);
  progress.say(`${manager}: a site from the registry, with ${DRIVER}@${String(version)}, serves a request`);
  return site;
}

async function publishDriver({ checkout, registry, progress }: RehearsalContext): Promise<string> {
  const published = await releaseOne(checkout, DRIVER, 'patch', registry);
  const version = published.get(DRIVER);
  if (version === undefined || published.size !== 1) {
    throw new Error(`a change of ${DRIVER} alone has released ${[...published.keys()].join(', ')}`);
  }
  progress.say(`published ${DRIVER}@${version}, and nothing else`);
  await clearListCaches(registry);
  return version;
}

/** Upgrades only the driver while the launcher is running, then restarts the launcher. */
async function upgrade({ sharedZooKeeper, progress }: RehearsalContext, site: Site, version: string): Promise<void> {
  await site.install(`${DRIVER}@${version}`);
  const listed = await driverOf(site);
  if (listed.version !== version || listed.error !== null) {
    throw new Error(
      `${site.manager}: nodepool drivers lists ${JSON.stringify(listed)} after the upgrade to ${version}`,
    );
  }
  await site.stop();
  await site.start(LABELS, CONFIG, (port) => config(sharedZooKeeper, port));
  await site.request(LABELS);
  const running = new RegExp(
    `^nodepool_driver_info\\{[^}]*version="${version.replaceAll('.', '\\.')}"[^}]*\\} 1$`,
    'm',
  );
  if (!running.test(await site.metrics(AbortSignal.timeout(METRICS_MS)))) {
    throw new Error(`${site.manager}: the metrics of the launcher do not name ${DRIVER}@${version} after a restart`);
  }
  await site.stop();
  progress.say(`${site.manager}: upgraded to ${DRIVER}@${version}, and restarted; serves a request`);
}

/** Creates a new driver, tests it, runs it by path, and installs it like any other. */
async function startDriver(context: RehearsalContext, manager: PackageManager, framework: string): Promise<void> {
  const { folder, registry, sharedZooKeeper, progress } = context;
  const name = `made-with-${manager}`;
  const parent = new Site(join(folder, `${manager}-drivers`), manager, sharedZooKeeper, registry.env);
  await parent.create();
  const options = ['--framework', framework];
  await parent.run(manager, [
    'create',
    '@nodepool/driver',
    name,
    ...(manager === 'npm' ? ['--', ...options] : options),
  ]);
  const driver = new Site(join(parent.folder, `nodepool-driver-${name}`), manager, sharedZooKeeper, registry.env);
  await driver.install();
  await driver.run(manager, ['test']);
  await driver.run(manager, ['run', 'lint']);
  await driver.run(manager, ['run', 'build']);
  progress.say(`${manager}: create @nodepool/driver ${name} (${framework}): its tests and its lint pass`);
  const yaml = await readFile(join(driver.folder, CONFIG), 'utf8');
  await serve(driver, (port) => withPorts(yaml, sharedZooKeeper.servers, port));
  progress.say(`${manager}: a launcher with that driver, by path, serves a request`);
  const [tarball = ''] = (await driver.run('npm', ['pack', '--silent', '--ignore-scripts']))
    .trim()
    .split('\n')
    .slice(-1);
  const site = new Site(join(folder, `${manager}-site-of-${name}`), manager, sharedZooKeeper, registry.env);
  await site.create();
  await site.install(LAUNCHER, join(driver.folder, tarball));
  await serve(site, (port) =>
    replaced(withPorts(yaml, sharedZooKeeper.servers, port), 'package: ./', `package: nodepool-driver-${name}`),
  );
  progress.say(`${manager}: a launcher with that driver, installed, serves a request`);
}

async function serve(site: Site, make: (port: number) => string): Promise<void> {
  try {
    await site.start(['debian'], 'site.yaml', make);
    await site.request(['debian']);
  } finally {
    await site.stop();
  }
}

async function driverOf(site: Site): Promise<{ readonly version: string | null; readonly error: string | null }> {
  const found = (await site.drivers(CONFIG)).find(({ name }) => name === DRIVER_NAME);
  if (found === undefined) throw new Error(`${site.manager}: nodepool drivers does not list ${DRIVER_NAME}`);
  return found;
}

function config(sharedZooKeeper: SharedZooKeeper, webappPort: number): object {
  return exampleConfig({ zooKeeper: { servers: sharedZooKeeper.servers }, webappPort, labels: LABELS });
}

/** Returns the sample configuration of a new driver with free ports. */
function withPorts(yaml: string, servers: string, webappPort: number): string {
  const zooKeeperPort = servers.slice(servers.lastIndexOf(':') + 1);
  return replaced(replaced(yaml, 'port: 2181', `port: ${zooKeeperPort}`), 'port: 8005', `port: ${webappPort}`);
}

function replaced(text: string, what: string, by: string): string {
  if (!text.includes(what)) throw new Error(`the sample configuration has no "${what}" to replace`);
  return text.replaceAll(what, by);
}
