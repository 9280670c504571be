/** The rehearsal, from the first release of the packages to the upgrade of a site. */

import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '@nodepool/dev-zookeeper';
import { exampleConfig } from '@nodepool/harness';
import type { Progress } from '../progress.js';
import { readWorkspace } from '../workspace.js';
import { follow, type Guide, type Substitutions } from './guide.js';
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
  /** Commands of the documentation. */
  readonly guide: Guide;
}

/** Runs the rehearsal and rejects at the first failure. */
export async function rehearse(context: RehearsalContext): Promise<void> {
  await publishAll(context);
  await runFromTarballs(context);
  const sites: Site[] = [];
  try {
    sites.push(await installGuideSite(context), await installSite(context, 'pnpm'));
    const [first] = await Promise.all(sites.map(driverOf));
    const version = await publishDriver(context);
    for (const site of sites) await upgrade(context, site, version);
    for (const site of sites) await rollBack(context, site, String(first?.version));
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

/** Packs the checkout and installs the files in an empty folder, as a site without the published packages does. */
async function runFromTarballs(context: RehearsalContext): Promise<void> {
  const { checkout, folder, registry, sharedZooKeeper, progress, guide } = context;
  const packed = join(folder, 'packed');
  // The rehearsal's checkout has its dependencies.
  const command = guide.pack.replace(/^pnpm install .*\n/, '');
  await follow(command, { '/srv/nodepool-packages': packed }, { cwd: checkout, env: registry.env });
  const site = new Site(join(folder, 'site-from-tarballs'), 'npm', sharedZooKeeper, registry.env);
  const paths = { '/srv/nodepool-packages': packed, '/opt/nodepool': site.folder };
  await follow(guide['from-tarballs'], paths, { cwd: folder, env: registry.env });
  try {
    await site.start(LABELS, CONFIG, (port) => config(sharedZooKeeper, port));
    await site.request(LABELS);
  } finally {
    await site.stop();
  }
  progress.say('npm: all packages from the files of pnpm pack:all, in an empty folder, serve a request');
}

/** Installs a site by the commands of the guide, starts its programs, and leaves the launcher running. */
async function installGuideSite(context: RehearsalContext): Promise<Site> {
  const { folder, registry, sharedZooKeeper, progress, guide } = context;
  const site = new Site(join(folder, 'npm-site'), 'npm', sharedZooKeeper, registry.env);
  const listed = await follow(guide.site, { '/opt/nodepool': site.folder }, { cwd: folder, env: registry.env });
  if (!listed.includes('openstack')) throw new Error(`nodepool drivers lists no openstack:\n${listed}`);
  await follow(guide.additions, {}, { cwd: site.folder, env: registry.env });
  await site.start(LABELS, CONFIG, (port) => config(sharedZooKeeper, port));
  await site.request(LABELS);
  progress.say('npm: a site from the registry, installed by the commands of the guide, serves a request');
  await tryBuilder(site, sharedZooKeeper);
  await tryBridge(site);
  progress.say('npm: its builder and its bridge start, serve their probes, and stop');
  return site;
}

async function tryBuilder(site: Site, sharedZooKeeper: SharedZooKeeper): Promise<void> {
  const [port = 0] = await freePorts(1);
  const folders = { 'images-dir': join(site.folder, 'images'), 'build-log-dir': join(site.folder, 'builds') };
  await site.write('builder.yaml', { ...config(sharedZooKeeper, port), ...folders });
  const options = ['-c', join(site.folder, 'builder.yaml'), '--status-port', String(port)];
  await site.tryProgram('nodepool-builder', options, `http://127.0.0.1:${port}/ready`);
}

/** Starts the bridge with an App whose server does not answer, since the process has to survive that. */
async function tryBridge(site: Site): Promise<void> {
  const [port = 0, closedPort = 0] = await freePorts(2);
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await site.write('app.pem', privateKey.export({ type: 'pkcs1', format: 'pem' }).toString());
  const app = { 'client-id': 'Iv23liABCDEFGHIJKLMN', 'installation-id': 1, 'private-key': 'app.pem' };
  await site.write('runner_key', '');
  const scaleSet = { name: 'linux', 'node-label': LABELS[0], 'max-runners': 1, identity: 'runner_key' };
  const installation = { name: 'acme', url: `http://127.0.0.1:${closedPort}/acme`, app, 'scale-sets': [scaleSet] };
  await site.write('github.yaml', { installations: [installation] });
  const files = ['-c', join(site.folder, CONFIG), '-g', join(site.folder, 'github.yaml')];
  await site.tryProgram('nodepool-github', [...files, '--status-port', String(port)], `http://127.0.0.1:${port}/live`);
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
async function upgrade(context: RehearsalContext, site: Site, version: string): Promise<void> {
  const install = site.manager === 'npm' ? context.guide['upgrade-driver'] : undefined;
  await changeDriver(context, site, version, install, {});
  if (site.manager === 'npm') {
    // The upgrade of everything finds the versions that are installed.
    await follow(
      context.guide.upgrade,
      { '/opt/nodepool': site.folder },
      { cwd: site.folder, env: context.registry.env },
    );
  }
  context.progress.say(`${site.manager}: upgraded to ${DRIVER}@${version}, and restarted; serves a request`);
}

/** Returns to the first version of the driver. */
async function rollBack(context: RehearsalContext, site: Site, version: string): Promise<void> {
  const install = site.manager === 'npm' ? context.guide['roll-back'] : undefined;
  await changeDriver(context, site, version, install, { '1.0.0': version });
  await site.stop();
  context.progress.say(`${site.manager}: rolled back to ${DRIVER}@${version}; serves a request`);
}

/** Installs a version of the driver, by the commands of the guide if they are given, and restarts the launcher. */
async function changeDriver(
  { sharedZooKeeper, registry }: RehearsalContext,
  site: Site,
  version: string,
  block: string | undefined,
  substitutions: Substitutions,
): Promise<void> {
  const restart = async (): Promise<void> => {
    const listed = await driverOf(site);
    if (listed.version !== version || listed.error !== null) {
      throw new Error(`${site.manager}: nodepool drivers lists ${JSON.stringify(listed)} instead of ${version}`);
    }
    await site.stop();
    await site.start(LABELS, CONFIG, (port) => config(sharedZooKeeper, port));
  };
  if (block === undefined) {
    await site.install(`${DRIVER}@${version}`);
    await restart();
  } else {
    const names = { '@nodepool/driver-openstack': DRIVER, ...substitutions };
    await follow(block, names, { cwd: site.folder, env: registry.env, restart });
  }
  await site.request(LABELS);
  const running = new RegExp(
    `^nodepool_driver_info\\{[^}]*version="${version.replaceAll('.', '\\.')}"[^}]*\\} 1$`,
    'm',
  );
  if (!running.test(await site.metrics(AbortSignal.timeout(METRICS_MS)))) {
    throw new Error(`${site.manager}: the metrics of the launcher do not name ${DRIVER}@${version} after a restart`);
  }
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
