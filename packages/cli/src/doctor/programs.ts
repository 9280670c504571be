/** Checks the registered launchers and builders, their versions, and what they serve. */

import { describePool, isPoolAt, SERVES_REQUESTS, type ComponentData, type Store } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import type { LauncherAnswer } from '../launchers.js';
import { Findings, firstNames, type Finding } from './finding.js';

export interface ProgramSources {
  readonly store: Store;
  readonly config: NodepoolConfig;
  /** The answers of the launchers' `/ready`. */
  readonly ready: readonly LauncherAnswer[];
}

export function checkPrograms({ store, config, ready }: ProgramSources): readonly Finding[] {
  const findings = new Findings('programs');
  const launchers = [...store.components.all('launcher')].map(({ component }) => component);
  const builders = [...store.components.all('builder')].map(({ component }) => component);
  if (launchers.length === 0) {
    findings.error('launchers', 'none is registered: no request is served', unregistered('nodepool-launcher'));
  }
  const images = [...config.diskImages.values()].filter(({ abstract }) => !abstract);
  if (builders.length === 0 && images.length > 0) {
    const reason = 'none is registered: no image is built or uploaded';
    findings.warning('builders', reason, unregistered('nodepool-builder'));
  }
  for (const path of store.components.withoutSession()) {
    const remedy =
      'delete it, e.g. with "zkCli.sh delete", because launchers of the Python Nodepool count it as present';
    findings.warning(path, 'a component that no session owns: it is ignored', remedy);
  }
  reportReady(ready, launchers, findings);
  for (const programs of [launchers, builders]) reportVersions(programs, findings);
  reportDrivers(launchers, config, findings);
  if (launchers.length > 0) reportServed(store, config, findings);
  return findings.list;
}

/** Reports that the programs are unknown, because they register in ZooKeeper. */
export function unknownPrograms(servers: readonly string[]): readonly Finding[] {
  const findings = new Findings('programs');
  findings.warning(
    'launchers and builders',
    `unknown: ZooKeeper (${servers.join(', ')}) cannot be used from here; launchers and builders may be waiting for it`,
    'see /ready of their web endpoints, and "ZooKeeper cannot be reached" in their logs',
  );
  return findings.list;
}

function unregistered(program: string): string {
  return (
    `start ${program}; one that runs may wait for ZooKeeper: see its log and its /ready, ` +
    'and compare its zookeeper-servers with this configuration'
  );
}

function reportReady(ready: readonly LauncherAnswer[], launchers: readonly ComponentData[], findings: Findings): void {
  for (const answer of ready) {
    const { host } = new URL(answer.launcher);
    if (answer.outcome === 'known') findings.ok(host, 'ready');
    else findings.warning(host, answer.reason, 'see the log and the status page of the launcher; check the firewall');
  }
  const silent = launchers.filter(({ webapp }) => webapp === undefined).map(({ hostname }) => hostname);
  if (silent.length > 0) findings.info(firstNames(silent), 'registered without a web endpoint: not asked');
}

/** Compares the versions of programs of one kind; launchers and builders have versions of their own. */
function reportVersions(programs: readonly ComponentData[], findings: Findings): void {
  const versions = new Map<string, string[]>();
  for (const { kind, hostname, version } of programs) {
    versions.set(version, [...(versions.get(version) ?? []), `${kind} on ${hostname}`]);
  }
  for (const [version, names] of versions) {
    if (versions.size === 1) findings.ok(firstNames(names), `version ${version}`);
    else {
      const remedy =
        'install the same version on all machines and restart, or finish the switch to this implementation';
      findings.warning(firstNames(names), `version ${version}, unlike others`, remedy);
    }
  }
}

/** Compares the drivers of the launchers with each other and with those that are installed here. */
function reportDrivers(launchers: readonly ComponentData[], config: NodepoolConfig, findings: Findings): void {
  const versions = new Map<string, Map<string, string[]>>();
  const add = (driver: string, version: string, where: string): void => {
    const known = versions.get(driver) ?? new Map<string, string[]>();
    known.set(version, [...(known.get(version) ?? []), where]);
    versions.set(driver, known);
  };
  for (const { hostname, drivers = {} } of launchers) {
    for (const [driver, version] of Object.entries(drivers)) add(driver, version, hostname);
  }
  for (const [driver, { version }] of config.driverPackages ?? []) {
    if (versions.has(driver)) add(driver, version, 'this machine');
  }
  for (const [driver, known] of versions) {
    if (known.size < 2) continue;
    const text = [...known].map(([version, places]) => `${version} on ${firstNames(places)}`).join('; ');
    findings.warning(`driver ${driver}`, text, 'install the same version everywhere and restart the launchers');
  }
}

/** Reports providers and labels of the configuration that no registered pool serves. */
function reportServed(store: Store, config: NodepoolConfig, findings: Findings): void {
  const pools = [...store.components.pools()];
  const served = new Set(pools.map(({ provider_name: provider }) => provider));
  const labels = new Set(pools.flatMap(({ supported_labels: supported }) => supported));
  const enabled = [...config.providers.values()].filter(({ pools: own }) =>
    [...own.values()].some(({ maxServers }) => maxServers > 0),
  );
  for (const { name } of enabled.filter((provider) => !served.has(provider.name))) {
    const remedy = 'start its launcher, or look for the reason in the logs; do the launchers have this configuration?';
    findings.warning(`provider ${name}`, 'no registered launcher serves it', remedy);
  }
  for (const { name, minReady } of config.labels.values()) {
    if (minReady >= 0 && !labels.has(name)) {
      const remedy = 'start the launcher that serves it, add it to a pool, or remove it from labels';
      findings.warning(`label ${name}`, 'no registered pool serves it', remedy);
    }
  }
  const says = new Map<string, string[]>();
  for (const pool of pools) {
    const state = describePool(pool);
    if (pool.state !== 'running' || state === SERVES_REQUESTS) continue;
    const place = { provider: pool.provider_name, pool: pool.name };
    const isCommon = pools.every((other) => !isPoolAt(other, place) || describePool(other) === state);
    const name = `${place.provider}/${place.pool}${isCommon ? '' : ` of launcher ${pool.hostname}`}`;
    says.set(state, [...new Set([...(says.get(state) ?? []), name])]);
  }
  for (const [state, names] of says)
    findings.info(`${names.length === 1 ? 'pool' : 'pools'} ${firstNames(names)}`, state);
}
