/** The scenarios with their targets. Each runs with a separate ZooKeeper and launcher. */

import {
  LABEL,
  type BenchmarkEnvironment,
  type EnvironmentOptions,
  type EventLoopDelay,
  type LauncherFacts,
} from './environment.js';
import { BACKING_NODES } from './backing-nodes.js';
import { counts } from './counts.js';
import { compareWithFloor } from './floor/compare.js';
import { openBlackHole } from './black-hole.js';
import { sectionOf, KUBERNETES_NODES, startCluster } from './kubernetes.js';
import { LargeSite } from './large.js';
import { manyPools } from './many-pools.js';
import { comparePhases, PHASES_SITE, quantile } from './phases.js';
import { cpuSeconds } from './process-facts.js';
import { MEBIBYTE, mebibytes, milliseconds, percent, plain, row, seconds } from './rows.js';
import {
  measureWorkingProvider,
  burst,
  idleShare,
  type BurstFigures,
  median,
  residentMemory,
  singleRequests,
  throughBottleneck,
} from './scenarios.js';
import { severalLaunchers } from './several-launchers.js';
import { loopsOf, scenario, withEnvironment, type MeasuredLoop, type Outcome, type Scenario } from './scenario.js';
import { measureStartUp } from './start-up.js';
import { measureStatic, STATIC_MACHINES } from './static-machines.js';

/** Launchers whose first burst is measured. */
const FIRST_BURSTS = 5;
/** Pairs of launchers whose bursts are compared. */
const PAIRS = 3;

export const SCENARIOS: readonly Scenario[] = [
  {
    letters: 'y',
    what: 'the launcher beside the floor, a launcher without logic',
    run: async (options) => ({ rows: await compareWithFloor(options), launchers: [], eventLoops: [] }),
  },
  { letters: 'w', what: 'starts of the programs on an empty site', run: startUp },
  scenario('a h', '50 requests one after the other', async (environment, signal) => {
    const { medianMs, transactionsPerLife } = await singleRequests(environment, 50, signal);
    return [
      row('a  one request on an idle launcher, median of 50', medianMs, undefined, milliseconds, '2400 ms'),
      row('h  ZooKeeper transactions per node life', transactionsPerLife, 4.5, plain, '21', true),
    ];
  }),
  { letters: 'b d p', what: '1,000 requests at once', run: firstBursts },
  // The event-loop probe would wake up the idle launcher.
  scenario('counts', 'requests, bytes, events and wake-ups', counts, { probe: 'none', deadlineMs: 300_000 }),
  scenario('c', '2,000 requests at once', async (environment, signal) => {
    const { fulfilledMs, deletedMs } = await burst(environment, 2000, signal);
    return [
      row('c  2,000 requests at once, all fulfilled', fulfilledMs, undefined, seconds, '56 s'),
      row('   2,000 nodes released at once, all deleted', deletedMs, undefined, seconds, '-'),
    ];
  }),
  { letters: 'q', what: '10,000 requests at once', run: tenThousand },
  scenario(
    'r',
    'resident memory with up to 10,000 ready nodes',
    async (environment, signal) => {
      const [idle = NaN, thousand = NaN, tenThousandNodes = NaN] = await residentMemory(
        environment,
        [1000, 10_000],
        signal,
      );
      return [
        row('r  resident memory: idle', idle, 90 * MEBIBYTE, mebibytes, '-'),
        row('   … with 1,000 ready nodes', thousand, 120 * MEBIBYTE, mebibytes, '-'),
        row('   … with 10,000 ready nodes', tenThousandNodes, 190 * MEBIBYTE, mebibytes, '-'),
      ];
    },
    { probe: 'none', deadlineMs: 300_000 },
  ),
  scenario(
    'e',
    '1,000 ready nodes, and nothing to do for 10 s',
    async (environment, signal) => {
      const share = await idleShare(environment, 1000, signal);
      return [row('e  1,000 idle ready nodes, share of a core over 10 s', share, undefined, percent, '-')];
    },
    { probe: 'none' },
  ),
  scenario(
    't',
    '10,000 ready nodes, and nothing to do for 10 s',
    async (environment, signal) => {
      const share = await idleShare(environment, 10_000, signal);
      return [row('t  10,000 idle ready nodes, share of a core over 10 s', share, undefined, percent, '-')];
    },
    { probe: 'none', deadlineMs: 300_000 },
  ),
  scenario(
    'g',
    '1,000 requests to a pool with max-servers 100',
    async (environment, signal) => {
      const took = await throughBottleneck(environment, 1000, signal);
      return [row('g  1,000 requests, max-servers 100', took, undefined, seconds, '261 s')];
    },
    { site: { labels: [LABEL], providers: [{ maxServers: 100 }] } },
  ),
  scenario(
    'phases',
    'phases of 1,000 requests, beside the measurement of their requestor',
    async (environment, signal) => {
      const { measured, differences, inexact, means } = await comparePhases(environment, 1000, signal);
      const each = [...means].map(([phase, ms]) =>
        row(`   … in phase ${phase}, mean`, ms, undefined, milliseconds, '-'),
      );
      return [
        row('phases  difference to the requestor, p95', quantile(differences, 0.95), undefined, milliseconds, '-'),
        row('   … median', quantile(differences, 0.5), undefined, milliseconds, '-'),
        row('   … largest', quantile(differences, 1), undefined, milliseconds, '-'),
        row('   sum of the phases and the whole, largest difference', inexact, 0.01, (ms) => `${plain(ms)} ms`, '-'),
        row('   wait as the requestor measured it, median', quantile(measured, 0.5), undefined, milliseconds, '-'),
        row('   … p95', quantile(measured, 0.95), undefined, milliseconds, '-'),
        ...each,
      ];
    },
    { site: PHASES_SITE },
  ),
  { letters: 'j k l m s', what: '10,000 nodes and 5,000 waiting requests', run: largeSite },
  { letters: 'v', what: '50,000 nodes and 5,000 waiting requests', run: veryLargeSite },
  scenario(
    'u',
    '1,000 slots of static machines requested at once',
    async (environment, signal) => {
      const { registeredMs, fulfilledMs, readyAgainMs, cpuMsPerUse } = await measureStatic(environment, signal);
      return [
        row('u  1,000 slots of static machines, requested at once', fulfilledMs, undefined, seconds, '-'),
        row('   … from the start of the launcher until all are ready', registeredMs, undefined, seconds, '-'),
        row('   … from their return until all are ready again', readyAgainMs, undefined, seconds, '-'),
        row('   … processor time of the launcher per use', cpuMsPerUse, undefined, milliseconds, '-'),
      ];
    },
    { sections: STATIC_MACHINES },
  ),
  { letters: 'x', what: '1,000 slots of backing nodes requested at once', run: backingNodes },
  { letters: 'z', what: 'several launchers on one ensemble', run: severalLaunchers },
  { letters: 'n', what: 'a provider beside one that hangs', run: besideHangingProvider },
  { letters: 'kubernetes', what: '200 pods at once', run: pods },
  { letters: 'o', what: '200 and 1,000 pools, 10,000 nodes and 5,000 requests', run: manyPools },
];

async function startUp({ dataFolder }: EnvironmentOptions): Promise<Outcome> {
  const { listMs, launcherMs, launcherCpuMs } = await measureStartUp(dataFolder);
  return {
    rows: [
      row('w  nodepool list on an empty site, median of 5', listMs, undefined, milliseconds, '-'),
      row('   start of a launcher until it offers its label, median of 5', launcherMs, undefined, milliseconds, '-'),
      row('   … processor time until then', launcherCpuMs, undefined, milliseconds, '-'),
    ],
    launchers: [],
    eventLoops: [],
  };
}

/** Compares nodes on backing nodes with nodes of the example driver, the first burst of a launcher each. */
async function backingNodes(options: EnvironmentOptions): Promise<Outcome> {
  const what = '1,000 slots at once';
  const measure = async (environment: BenchmarkEnvironment, signal: AbortSignal): Promise<BurstFigures> =>
    burst(environment, 1000, signal);
  const ratios: number[] = [];
  const figures: BurstFigures[] = [];
  const launchers: LauncherFacts[] = [];
  // The speed of a virtual machine changes within seconds.
  for (let pair = 0; pair < PAIRS; pair += 1) {
    const own = await withEnvironment('1,000 nodes at once', options, measure);
    const { result, facts } = await withEnvironment(what, { ...options, ...BACKING_NODES }, measure);
    ratios.push(result.fulfilledMs / own.result.fulfilledMs);
    figures.push(result);
    launchers.push(facts);
  }
  const typical = (of: keyof BurstFigures): number => median(figures.map((each) => each[of]));
  const name = `x  ${what}, compared with nodes of the example driver, median of ${PAIRS}`;
  return {
    rows: [
      row(name, median(ratios), 1.3, plain, '-'),
      row('   … all fulfilled', typical('fulfilledMs'), undefined, seconds, '-'),
      row('   … released at once, all deleted', typical('deletedMs'), undefined, seconds, '-'),
      row('   … ZooKeeper transactions per node life', typical('transactionsPerLife'), undefined, plain, '-', true),
      row('   … processor time per node life', typical('cpuMsPerLife'), undefined, milliseconds, '-'),
    ],
    launchers,
    eventLoops: launchers.flatMap((facts) => loopsOf(facts, what)),
  };
}

/** Launches and deletes pods on a simulated cluster. */
async function pods(options: EnvironmentOptions): Promise<Outcome> {
  const cluster = await startCluster();
  try {
    const environmentOptions = { ...options, sections: [sectionOf(cluster)] };
    const { result, facts } = await withEnvironment('200 pods', environmentOptions, async (environment, signal) => {
      cluster.calls.reset();
      const figures = await burst(environment, KUBERNETES_NODES, signal);
      return { ...figures, callsPerNode: cluster.calls.count() / KUBERNETES_NODES };
    });
    const { fulfilledMs, deletedMs, callsPerNode, cpuMsPerLife } = result;
    const rows = [
      row('kubernetes  200 pods at once, all fulfilled', fulfilledMs, undefined, seconds, '-'),
      row('   200 pods released at once, all deleted', deletedMs, undefined, seconds, '-'),
      row('   API calls per node', callsPerNode, 11, plain, '-', true),
      row('   processor time of the launcher per node life', cpuMsPerLife, undefined, milliseconds, '-'),
    ];
    return { rows, launchers: [facts], eventLoops: loopsOf(facts, `${KUBERNETES_NODES} pods at once`) };
  } finally {
    await cluster.close();
  }
}

/** Measures the first bursts of several launchers, because the speed of a virtual machine changes within seconds. */
async function firstBursts(options: EnvironmentOptions): Promise<Outcome> {
  const what = '1,000 requests at once';
  const figures: BurstFigures[] = [];
  const launchers: LauncherFacts[] = [];
  for (let launcher = 0; launcher < FIRST_BURSTS; launcher += 1) {
    const { result, facts } = await withEnvironment(what, options, async (environment, signal) =>
      burst(environment, 1000, signal),
    );
    figures.push(result);
    launchers.push(facts);
  }
  const typical = (of: keyof BurstFigures): number => median(figures.map((each) => each[of]));
  const cpu = figures.map(({ cpuMsPerLife }) => milliseconds(cpuMsPerLife)).join(', ');
  return {
    rows: [
      row(`b  ${what}, all fulfilled, median of ${FIRST_BURSTS}`, typical('fulfilledMs'), undefined, seconds, '22 s'),
      row('d  1,000 nodes released at once, all deleted', typical('deletedMs'), undefined, seconds, '-'),
      row(
        `h  ZooKeeper transactions per node life, 1,000 at once`,
        typical('transactionsPerLife'),
        4.2,
        plain,
        '21',
        true,
      ),
      row(`p  processor time per node life, 1,000 at once`, typical('cpuMsPerLife'), undefined, milliseconds, '18 ms'),
      row('   … of each launcher', NaN, undefined, () => cpu, '-'),
    ],
    launchers,
    eventLoops: launchers.flatMap((facts) => loopsOf(facts, what)),
  };
}

/** Compares a burst of 10,000 requests with one of 1,000 on the same launcher. */
async function tenThousand(options: EnvironmentOptions): Promise<Outcome> {
  const { result, facts } = await withEnvironment(
    '10,000 requests',
    { ...options, deadlineMs: 600_000 },
    async (environment, signal) => ({
      small: await burst(environment, 1000, signal),
      large: await burst(environment, 10_000, signal),
    }),
  );
  const { small, large } = result;
  const perRequest = large.fulfilledMs / 10_000 / (small.fulfilledMs / 1000);
  return {
    rows: [
      row('q  10,000 requests at once, all fulfilled', large.fulfilledMs, undefined, seconds, '-'),
      row('   … time per request, compared with 1,000 at once', perRequest, 1.3, plain, '-'),
      row('   … processor time per node life', large.cpuMsPerLife, undefined, milliseconds, '-'),
      row('   … most memory resident', facts.peakResidentBytes, undefined, mebibytes, '-'),
    ],
    launchers: [],
    eventLoops: loopsOf(facts, '10,000 requests at once'),
  };
}

async function largeSite(options: EnvironmentOptions): Promise<Outcome> {
  const site = new LargeSite(10_000);
  const prepared: EnvironmentOptions = {
    ...options,
    optimizedZooKeeper: true,
    site: site.config,
    prepare: async (zooKeeper, requestor) => site.fill(zooKeeper, requestor),
  };
  const { result, facts } = await withEnvironment('10,000 nodes', prepared, async (environment, signal) =>
    site.measure(environment, signal),
  );
  const { decision, fulfilled } = result.atRate;
  const delays = LargeSite.phases.flatMap((phase, index) => {
    const delay = facts.eventLoopDelays[index];
    if (delay === undefined) return [];
    return [
      row(`m  … delay of its event loop, p99: ${phase}`, delay.p99, undefined, milliseconds, '-'),
      row('   … longest', delay.max, undefined, milliseconds, '-'),
    ];
  });
  return {
    rows: [
      row('j  10,000 nodes, 5,000 requests: start to first decision', result.firstDecisionMs, undefined, seconds, '-'),
      row('k  … one request of a label with room, median of 50', result.singleRequestMs, undefined, milliseconds, '-'),
      row('   … 1,000 requests at once', result.burstMs, undefined, seconds, '-'),
      row(
        's  … 200 requests/s for 10 s, request to create call: median',
        quantile(decision, 0.5),
        undefined,
        milliseconds,
        '-',
      ),
      row('   … p99', quantile(decision, 0.99), undefined, milliseconds, '-'),
      row('   … request written to fulfilled: median', quantile(fulfilled, 0.5), undefined, milliseconds, '-'),
      row('   … p99', quantile(fulfilled, 0.99), undefined, milliseconds, '-'),
      row('l  … most memory resident', facts.peakResidentBytes, 400 * MEBIBYTE, mebibytes, '-'),
      ...delays,
    ],
    launchers: [],
    eventLoops: loopsOf(facts, ...LargeSite.phases.slice(1).map((phase) => `10,000 nodes: ${phase}`)),
  };
}

async function veryLargeSite(options: EnvironmentOptions): Promise<Outcome> {
  const site = new LargeSite(50_000);
  const prepared: EnvironmentOptions = {
    ...options,
    site: site.config,
    deadlineMs: 300_000,
    prepare: async (zooKeeper, requestor) => site.fill(zooKeeper, requestor),
  };
  const { result, facts } = await withEnvironment('50,000 nodes', prepared, async (environment, signal) => {
    const firstDecisionMs = await site.untilFirstDecision(environment);
    const startCpuMs = cpuSeconds(environment.launcher.pid) * 1000;
    const { fulfilledMs, cpuMsPerLife } = await burst(environment, 1000, signal);
    return { firstDecisionMs, startCpuMs, fulfilledMs, cpuMsPerLife };
  });
  const [load, decide, busy] = facts.eventLoopDelays;
  const start = load === undefined || decide === undefined ? undefined : longerOf(load, decide);
  return {
    rows: [
      row('v  50,000 nodes, 5,000 requests: start to first decision', result.firstDecisionMs, undefined, seconds, '-'),
      row('   … processor time until then', result.startCpuMs, undefined, seconds, '-'),
      row('   … most memory resident', facts.peakResidentBytes, 500 * MEBIBYTE, mebibytes, '-'),
      row('   … longest delay of its event loop: start', start?.max ?? NaN, undefined, milliseconds, '-'),
      row('   … processor time of the longest turn: start', start?.busiest ?? NaN, undefined, milliseconds, '-'),
      row('   … 1,000 requests at once', result.fulfilledMs, undefined, seconds, '-'),
      row('   … processor time per node life', result.cpuMsPerLife, undefined, milliseconds, '-'),
      row('   … longest delay of its event loop: 1,000 at once', busy?.max ?? NaN, undefined, milliseconds, '-'),
      row('   … processor time of the longest turn: 1,000 at once', busy?.busiest ?? NaN, undefined, milliseconds, '-'),
    ],
    launchers: [],
    eventLoops: loopsOf(facts, '50,000 nodes: until the first decision', '50,000 nodes: 1,000 at once'),
  };
}

function longerOf(a: EventLoopDelay, b: EventLoopDelay): EventLoopDelay {
  return {
    p99: Math.max(a.p99, b.p99),
    max: Math.max(a.max, b.max),
    ownP99: Math.max(a.ownP99, b.ownP99),
    ownMax: Math.max(a.ownMax, b.ownMax),
    busiest: Math.max(a.busiest, b.busiest),
  };
}

/**
 * Number of rounds. They alternate between a hanging and an idle provider, so that other load on the machine affects
 * both.
 */
const HANGING_ROUNDS = 5;

async function besideHangingProvider(options: EnvironmentOptions): Promise<Outcome> {
  const alone: { single: number[]; burst: number[] } = { single: [], burst: [] };
  const beside: { single: number[]; burst: number[] } = { single: [], burst: [] };
  const eventLoops: MeasuredLoop[] = [];
  for (let round = 0; round < HANGING_ROUNDS; round++) {
    await measureRun(options, false, alone);
    eventLoops.push(...loopsOf(await measureRun(options, true, beside), 'beside a provider that hangs'));
  }
  const change = (of: 'single' | 'burst'): number => median(beside[of]) / median(alone[of]) - 1;
  return {
    rows: [
      row('n  one request, beside a provider that hangs: longer by', change('single'), 0.1, percent, '-'),
      row('   … median of 50, without it', median(alone.single), undefined, milliseconds, '-'),
      row('   100 at once, beside a provider that hangs: longer by', change('burst'), 0.1, percent, '-'),
      row('   … without it', median(alone.burst), undefined, milliseconds, '-'),
    ],
    launchers: [],
    eventLoops,
  };
}

/** Measures one provider while the other one hangs or is idle. */
async function measureRun(
  options: EnvironmentOptions,
  hangs: boolean,
  figures: { single: number[]; burst: number[] },
): Promise<LauncherFacts> {
  const hole = await openBlackHole();
  try {
    const other = { name: 'other', labels: ['other'], ...(hangs ? { endpoint: hole.endpoint } : {}) };
    const site = { labels: [LABEL, 'other'], providers: [{ labels: [LABEL] }, other] };
    const { result, facts } = await withEnvironment(
      'two providers',
      { ...options, site },
      async (environment, signal) => measureWorkingProvider(environment, 'other', hangs ? 100 : 0, signal),
    );
    figures.single.push(result.singleRequestMs);
    figures.burst.push(result.burstMs);
    return facts;
  } finally {
    await hole.close();
  }
}
