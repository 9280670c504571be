/** Several launchers on one ensemble: three that offer the same label, and one beside that of another provider. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '@nodepool/dev-zookeeper';
import {
  conditionMet,
  exampleConfig,
  Program,
  programPath,
  registeredPools,
  startLauncher,
  type ExampleConfigOptions,
} from '@nodepool/harness';
import { BenchmarkEnvironment, LABEL, type EnvironmentOptions } from './environment.js';
import { cpuSeconds } from './process-facts.js';
import { milliseconds, plain, row, seconds } from './rows.js';
import type { Outcome } from './scenario.js';
import { burst, median, type BurstFigures } from './scenarios.js';

type Site = Pick<ExampleConfigOptions, 'labels' | 'providers'>;

const REQUESTS = 1000;
/** Bursts that are measured after the first one of the processes. */
const WARM_BURSTS = 3;
/** Pairs that are measured in turn, so that the speed of the machine affects both sides. */
const PAIRS = 3;
const DEADLINE_MS = 600_000;
const POOLS = '/nodepool/components/pool';

/** Medians of warm bursts. */
interface GroupFigures {
  readonly fulfilledMs: number;
  /** Transactions of all launchers per node life. */
  readonly transactionsPerLife: number;
  /** Processor time of all launchers per node life (ms). */
  readonly cpuMsPerLife: number;
  /** Processor time of the launchers after the first one per node life (ms). */
  readonly furtherCpuMsPerLife: number;
}

/** Figures of one launcher and of three with the same configuration, and of a launcher with another provider. */
interface SeveralFigures {
  readonly one: GroupFigures;
  readonly three: GroupFigures;
  readonly bystander: GroupFigures;
}

/** Measures all groups in turn. Returns the medians of the pairs. */
async function measureSeveral(options: EnvironmentOptions): Promise<SeveralFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-several-'));
  const [port = 0] = await freePorts(1);
  const cloud = await Program.start({
    name: 'cloud',
    command: process.execPath,
    args: [programPath('nodepool-example-cloud'), '--port', String(port)],
    logFile: join(folder, 'cloud.log'),
    cwd: folder,
    ownSession: false,
  });
  // The launchers share a cloud, so that each can delete the nodes of the other ones.
  const shared: Site = { labels: [LABEL], providers: [{ endpoint: `http://127.0.0.1:${port}` }] };
  const other: Site = { labels: ['other'], providers: [{ name: 'other' }] };
  const measured: Record<keyof SeveralFigures, GroupFigures[]> = { one: [], three: [], bystander: [] };
  try {
    for (let pair = 0; pair < PAIRS; pair += 1) {
      measured.one.push(await measureGroup(options, folder, [shared]));
      measured.three.push(await measureGroup(options, folder, [shared, shared, shared]));
      measured.bystander.push(await measureGroup(options, folder, [{ labels: [LABEL] }, other]));
    }
  } finally {
    await cloud.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return { one: typical(measured.one), three: typical(measured.three), bystander: typical(measured.bystander) };
}

/** Measures warm bursts of requests for `LABEL` with a launcher for each site. */
async function measureGroup(
  options: EnvironmentOptions,
  folder: string,
  [site, ...furtherSites]: readonly Site[],
): Promise<GroupFigures> {
  const environment = await BenchmarkEnvironment.make({
    ...{ ...options, probe: 'none', deadlineMs: DEADLINE_MS },
    ...(site === undefined ? {} : { site }),
  });
  const further: Program[] = [];
  try {
    for (const [index, each] of furtherSites.entries()) {
      const [webappPort = 0] = await freePorts(1);
      const config = exampleConfig({ zooKeeper: { servers: environment.servers }, webappPort, ...each });
      further.push(await startLauncher({ name: `launcher-${index + 2}`, folder, ownSession: false, config }));
    }
    return await environment.measure('several launchers', async (signal) => {
      await conditionMet(environment.zooKeeper, POOLS, signal, async () => {
        return (await registeredPools(environment.zooKeeper)).size > further.length;
      });
      await burst(environment, REQUESTS, signal);
      const bursts: (BurstFigures & { readonly furtherCpuMsPerLife: number })[] = [];
      for (let index = 0; index < WARM_BURSTS; index += 1) {
        const before = cpuOf(further);
        const figures = await burst(environment, REQUESTS, signal);
        bursts.push({ ...figures, furtherCpuMsPerLife: ((cpuOf(further) - before) * 1000) / REQUESTS });
      }
      const all = bursts.map((each) => ({ ...each, cpuMsPerLife: each.cpuMsPerLife + each.furtherCpuMsPerLife }));
      return typical(all);
    });
  } finally {
    for (const program of further) await program.stop();
    await environment.clear();
  }
}

function cpuOf(programs: readonly Program[]): number {
  return programs.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
}

function typical(measured: readonly GroupFigures[]): GroupFigures {
  const of = (figure: keyof GroupFigures): number => median(measured.map((each) => each[figure]));
  return {
    fulfilledMs: of('fulfilledMs'),
    transactionsPerLife: of('transactionsPerLife'),
    cpuMsPerLife: of('cpuMsPerLife'),
    furtherCpuMsPerLife: of('furtherCpuMsPerLife'),
  };
}

/** Compares three launchers of one label with one, and measures what a launcher spends on the lives of another. */
export async function severalLaunchers(options: EnvironmentOptions): Promise<Outcome> {
  const { one, three, bystander } = await measureSeveral(options);
  const ratio = three.cpuMsPerLife / one.cpuMsPerLife;
  return {
    rows: [
      row('z  three launchers: ZooKeeper transactions per node life', three.transactionsPerLife, 5, plain, '-', true),
      row('   … of one launcher', one.transactionsPerLife, undefined, plain, '-'),
      row('   … processor time of all per node life', three.cpuMsPerLife, undefined, milliseconds, '-'),
      row('   … relative to that of one launcher', ratio, undefined, plain, '-'),
      row('   … 1,000 requests at once, all fulfilled', three.fulfilledMs, undefined, seconds, '-'),
      row('   … by one launcher', one.fulfilledMs, undefined, seconds, '-'),
      row(
        '   a launcher of another provider: processor time per life',
        bystander.furtherCpuMsPerLife,
        undefined,
        milliseconds,
        '-',
      ),
    ],
    launchers: [],
    eventLoops: [],
  };
}
