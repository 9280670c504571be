/** Runs all checks. Every check has a time limit, and none of them writes anything. */

import { hostname } from 'node:os';
import type { Clock, Logger, RandomSource } from '@nodepool/core';
import { reasonOf, TimerQueue, withDeadline } from '@nodepool/core';
import { formatProblem, type LoadResult, type NodepoolConfig } from '@nodepool/config';
import { NODEPOOL_ROOT, openStore, ZooKeeperChrootError, type Store } from '@nodepool/store';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { askLaunchers, launcherUrls } from '../launchers.js';
import { checkCertificates } from './certificates.js';
import { checkClocks } from './clocks.js';
import { checkDisk } from './disk.js';
import { Findings, type Finding } from './finding.js';
import { checkLatency } from './latency.js';
import { checkLocks } from './locks.js';
import { checkProblems, PROBLEMS_PATH } from './problems.js';
import { checkPrograms, unknownPrograms } from './programs.js';
import { checkProviders } from './providers.js';
import { checkRecords } from './records.js';
import { checkServers } from './zookeeper-servers.js';

/** Longest time of one check; the checks of a stage run beside each other. */
const CHECK_MS = 30_000;
const LAUNCHER_MS = 5000;

export interface DoctorContext {
  readonly loaded: LoadResult;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly interrupted: AbortSignal;
  /** Connects to the ensemble; rejects after some seconds. */
  readonly connect: (config: NodepoolConfig) => Promise<ZooKeeper>;
}

/** Resolves with all findings. Rejects only if the user interrupts the command. */
export async function examine(context: DoctorContext): Promise<readonly Finding[]> {
  const { loaded } = context;
  const configuration = checkConfiguration(loaded);
  if (!loaded.ok) return configuration;
  const { config } = loaded;
  const now = context.clock.now();
  const [connected, ...independent] = await Promise.all([
    withZooKeeper(context, config),
    limited(context, 'zookeeper', () => checkServers(config.zookeeper, now)),
    limited(context, 'certificates', () => checkCertificates(config.zookeeper, now)),
  ]);
  return [...configuration, ...independent.flat(), ...connected];
}

function checkConfiguration(loaded: LoadResult): readonly Finding[] {
  const findings = new Findings('configuration');
  const correct = 'correct the file; `nodepool config-validate` shows all problems';
  if (!loaded.ok) {
    for (const problem of loaded.problems) findings.error('configuration', formatProblem(problem), correct);
    findings.warning('all other checks', 'nothing else was examined', 'correct the file, then run the command again');
  } else {
    for (const warning of loaded.warnings) findings.warning('configuration', formatProblem(warning), correct);
    if (loaded.warnings.length === 0) findings.ok('configuration', 'valid');
  }
  return findings.list;
}

/** Runs the checks that need the records, or without ZooKeeper those that do not. */
async function withZooKeeper(context: DoctorContext, config: NodepoolConfig): Promise<readonly Finding[]> {
  let zooKeeper: ZooKeeper;
  try {
    zooKeeper = await context.connect(config);
  } catch (error) {
    context.interrupted.throwIfAborted();
    const findings = new Findings('zookeeper');
    const [reason, remedy] =
      error instanceof ZooKeeperChrootError
        ? [error.reason, error.remedy]
        : [reasonOf(error), 'see the findings about the servers and certificates'];
    findings.error('connection', reason, remedy);
    const { servers } = config.zookeeper;
    return [...findings.list, ...unknownPrograms(servers), ...(await withoutRecords(context, config))];
  }
  const { clock, random, log } = context;
  const store = openStore(zooKeeper, { clock, random, log, identifier: hostname(), readOnly: true });
  try {
    if ((await zooKeeper.exists(NODEPOOL_ROOT)) === undefined) {
      const findings = new Findings('zookeeper');
      const remedy = 'check the chroot in zookeeper-servers; a first launcher creates the records';
      findings.warning(NODEPOOL_ROOT, 'does not exist: no Nodepool has used this ensemble and chroot', remedy);
      return [...findings.list, ...(await withoutRecords(context, config))];
    }
    return await withRecords(context, config, zooKeeper, store);
  } finally {
    store.close();
    await zooKeeper.close();
  }
}

async function withoutRecords(context: DoctorContext, config: NodepoolConfig): Promise<readonly Finding[]> {
  const found = await Promise.all([
    limited(context, 'providers', () => checkProviders({ ...context, config, store: undefined })),
    limited(context, 'disk', () => checkDisk(config, undefined)),
  ]);
  return found.flat();
}

async function withRecords(
  context: DoctorContext,
  config: NodepoolConfig,
  zooKeeper: ZooKeeper,
  store: Store,
): Promise<readonly Finding[]> {
  const { clock, interrupted } = context;
  store.start();
  const reading = await limited(context, 'records', async () => {
    await store.ready({ signal: interrupted });
    return [];
  });
  if (reading.length > 0) return [...reading, ...(await withoutRecords(context, config))];
  const asked = clock.now();
  const launchers = launcherUrls(store.components);
  const question = { timeoutMs: LAUNCHER_MS, interrupted };
  const [answers, problems] = await Promise.all([
    askLaunchers(launchers, { ...question, path: '/ready', accept: 'text/plain' }),
    askLaunchers(launchers, { ...question, path: PROBLEMS_PATH, accept: 'application/json' }),
  ]);
  const now = clock.now();
  const isReported = problems.some(({ outcome }) => outcome === 'known');
  const hasBuilder = [...store.components.all('builder')].some(({ component }) => component.hostname === hostname());
  const found = await Promise.all([
    limited(context, 'zookeeper', () => checkLatency(zooKeeper, config.zookeeper, clock)),
    limited(context, 'clocks', () => checkClocks(store, { answers, asked, answered: now }, clock)),
    limited(context, 'programs', async () => checkPrograms({ store, config, ready: answers })),
    limited(context, 'providers', () => checkProviders({ ...context, config, store })),
    limited(context, 'problems', async () =>
      checkProblems(
        problems.filter((_, index) => answers[index]?.outcome === 'known'),
        now,
      ),
    ),
    limited(context, 'records', async () => checkRecords({ store, config, now, isReported })),
    limited(context, 'records', () => checkLocks(store, now)),
    limited(context, 'disk', () => checkDisk(config, hasBuilder)),
  ]);
  return found.flat();
}

/** Runs a check. Returns a finding about the check itself if it fails or does not end in time. */
async function limited(
  { clock, interrupted }: DoctorContext,
  check: string,
  work: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const limits = {
    timers: new TimerQueue(clock),
    signal: interrupted,
    deadline: clock.monotonic() + CHECK_MS,
    onDeadline: () => new Error(`not finished within ${CHECK_MS / 1000} s`),
  };
  try {
    return await withDeadline(limits, work);
  } catch (error) {
    interrupted.throwIfAborted();
    const findings = new Findings(check);
    findings.error('check', `the check failed: ${reasonOf(error)}`, 'run the command again; with -d it logs details');
    return findings.list;
  }
}
