/** `pnpm soak`: a site under constant load, whose servers and launchers are restarted one after the other. */

import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { sleep, systemClock, TimerQueue, withDeadline } from '@nodepool/core';
import { interruption, Narrator, noNodesLeft, runCommandLine, UsageError } from '@nodepool/harness';
import { openRequestor, type Requestor } from '@nodepool/requestor';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { MEBIBYTE } from '../rows.js';
import { LABEL, SIZE, SoakSite } from './site.js';
import { regression } from './regression.js';

const HELP = `Usage: pnpm soak [options]

Three ZooKeeper servers and three launchers serve requests, while each of them is restarted in turn. Then the requests
continue without restarts. Finally the requests pause every 10 seconds until no node is left, and the memory of the
launchers is measured. Fails if a request is not served, if memory grows, or if something is left at the end.

  --minutes N   least length of the run; default 15
  --rate N      requests per second, and twelve times as many before memory is measured; default 25; fewer on a slow
                machine, which lengthens the run
  --help        this text
`;

/** Part of the run in which programs are restarted. */
const RESTARTS_SHARE = 0.1;
/** Requests after the restarts. The tables of a launcher's log of decisions grow until it has served 17,000. */
const WARM_UP_REQUESTS = 60_000;
/** Requests per second before memory is measured, relative to those afterwards. */
const WARM_UP_FACTOR = 12;
/**
 * Samples before those that count. The heap grows until about 7,000 requests at the lower rate are served, probably
 * because a launcher remembers 10,000 decisions about requests, and these replace those of the warm-up.
 */
const SETTLING_SAMPLES = 30;
/** Least number of samples that count. */
const MIN_SAMPLES = 36;
const MAX_RUNNING = 300;
/** Time of traffic before each sample. */
const SAMPLE_EVERY_MS = 10_000;
/** Interval between looks at the number of requests. */
const LOOK_EVERY_MS = 5000;
const USE_MS = 500;
/** Time limit of one request, milliseconds. */
const REQUEST_LIMIT_MS = 600_000;
/** Time limit of the deletion of all nodes, milliseconds. */
const DELETION_LIMIT_MS = 600_000;
const SLOPE_LIMIT = 2 * MEBIBYTE;
/** Watches that a launcher may have when it is idle; they do not grow with the number of requests. */
const WATCHES_PER_LAUNCHER = 20;

interface Load {
  served: number;
  readonly failures: string[];
  longestMs: number;
}

/**
 * Requests nodes at a constant rate, or as fast as they are served if that is slower, until the signal aborts. Resolves
 * when the last request has ended.
 */
async function applyLoad(requestor: Requestor, perSecond: number, load: Load, signal: AbortSignal): Promise<void> {
  const running = new Set<Promise<void>>();
  const began = systemClock.monotonic();
  for (let index = 0; !signal.aborted; index += 1) {
    const work: Promise<void> = oneRequest(requestor, load).finally(() => running.delete(work));
    running.add(work);
    // A slow machine gets fewer requests, not requests that wait until they fail.
    if (running.size >= MAX_RUNNING) await Promise.race(running);
    const early = began + ((index + 1) * 1000) / perSecond - systemClock.monotonic();
    if (early > 1) await sleep(systemClock, early, signal).catch(() => undefined);
  }
  await Promise.all(running);
}

interface Traffic {
  /** Ends the requests, and resolves when the last one has ended. */
  end(): Promise<void>;
}

function startTraffic(requestor: Requestor, perSecond: number, load: Load, signal: AbortSignal): Traffic {
  const over = new AbortController();
  const traffic = applyLoad(requestor, perSecond, load, AbortSignal.any([signal, over.signal]));
  return {
    end: async () => {
      over.abort();
      await traffic;
    },
  };
}

async function oneRequest(requestor: Requestor, load: Load): Promise<void> {
  const began = systemClock.monotonic();
  try {
    const lease = await requestor.acquire({ labels: [LABEL] }, { timeoutMs: REQUEST_LIMIT_MS });
    load.longestMs = Math.max(load.longestMs, systemClock.monotonic() - began);
    await lease.use();
    await sleep(systemClock, USE_MS, new AbortController().signal);
    await lease.return();
    load.served += 1;
  } catch (error) {
    load.failures.push(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  }
}

/** Restarts all servers and launchers in turn, at least once each, until the time is over. Returns their number. */
async function restartAll(site: SoakSite, until: number, narrator: Narrator, signal: AbortSignal): Promise<number> {
  let restarts = 0;
  for (; restarts < 2 * SIZE || systemClock.monotonic() < until; restarts += 1) {
    const index = Math.floor(restarts / 2) % SIZE;
    await sleep(systemClock, 5000, signal);
    site.check();
    narrator.say(`restart of ${restarts % 2 === 0 ? 'server' : 'launcher'} ${index}`);
    if (restarts % 2 === 0) await site.restartServer(index);
    else await site.restartLauncher(index);
  }
  return restarts;
}

async function leftovers(site: SoakSite): Promise<string[]> {
  const { zooKeeper } = site;
  const found: string[] = [];
  for (const path of ['/nodepool/nodes', '/nodepool/requests', '/nodepool/requests-lock']) {
    try {
      const { children } = await zooKeeper.children(path);
      found.push(...children.map((child) => `${path}/${child}`));
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) throw error;
    }
  }
  return found;
}

async function soak(minutes: number, rate: number, signal: AbortSignal): Promise<readonly string[]> {
  const narrator = new Narrator((line) => void process.stdout.write(`${line}\n`));
  const site = await SoakSite.start(signal);
  const requestor = openRequestor(site.zooKeeper, { name: 'soak' });
  const problems: string[] = [];
  try {
    const load: Load = { served: 0, failures: [], longestMs: 0 };
    const traffic = startTraffic(requestor, rate * WARM_UP_FACTOR, load, signal);
    const began = systemClock.monotonic();
    const at = (share: number): number => began + share * minutes * 60_000;
    const restarts = await restartAll(site, at(RESTARTS_SHARE), narrator, signal);
    narrator.say(`${restarts} restarts; the rest of the run has none`);
    const warmUpEnd = load.served + WARM_UP_REQUESTS * Math.min(1, minutes / 10);
    while (load.served < warmUpEnd) {
      site.check();
      narrator.say(`${load.served} requests served`);
      await sleep(systemClock, LOOK_EVERY_MS, signal);
    }
    await traffic.end();
    narrator.say('the requests become fewer');
    for (let samples = 0; samples < SETTLING_SAMPLES + MIN_SAMPLES || systemClock.monotonic() < at(1); samples += 1) {
      if (samples === SETTLING_SAMPLES) narrator.say('memory is measured');
      const more = startTraffic(requestor, rate, load, signal);
      await sleep(systemClock, SAMPLE_EVERY_MS, signal);
      await more.end();
      // Requests in progress would hide a slow growth.
      const deadline = systemClock.monotonic() + DELETION_LIMIT_MS;
      const onDeadline = (): Error => new Error('nodes were not deleted in time');
      await withDeadline({ timers: new TimerQueue(systemClock), signal, deadline, onDeadline }, (ended) =>
        noNodesLeft(site.zooKeeper, ended),
      );
      site.check();
      await site.sample(signal);
      const heaps = Array.from({ length: SIZE }, (_, index) => mebibytes(site.samples(index).at(-1)?.heapBytes ?? NaN));
      narrator.say(`${load.served} requests served; heaps of ${heaps.join(', ')} MiB`);
    }
    await requestor.close();
    // Orphaned locks are deleted by a controller that looks for them once a minute.
    await sleep(systemClock, 70_000, signal);
    for (let index = 0; index < SIZE; index += 1) problems.push(...memoryOf(site, index, narrator));
    const watches = await site.watches();
    const left = await leftovers(site);
    narrator.say(`${load.served} requests served, the longest wait was ${(load.longestMs / 1000).toFixed(1)} s`);
    narrator.say(`watches: ${watches}; left in ZooKeeper: ${left.length}`);
    narrator.say(
      `load average: ${loadavg()
        .map((each) => each.toFixed(1))
        .join(' ')}`,
    );
    if (load.failures.length > 0) problems.push(`${load.failures.length} requests failed: ${load.failures[0] ?? ''}`);
    if (left.length > 0) problems.push(`left in ZooKeeper: ${left.slice(0, 5).join(', ')}`);
    if (watches > SIZE * WATCHES_PER_LAUNCHER) problems.push(`${watches} watches are left`);
    return problems;
  } finally {
    await site.stop();
  }
}

function mebibytes(bytes: number): string {
  return (bytes / MEBIBYTE).toFixed(2);
}

/** Reports the memory, files and resources of a launcher. Returns the problems with their growth. */
function memoryOf(site: SoakSite, index: number, narrator: Narrator): string[] {
  const samples = site.samples(index).slice(SETTLING_SAMPLES);
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return [`launcher ${index} wrote no samples`];
  const { slope: perHour, error } = regression(
    samples.map(({ time, heapBytes }) => ({ x: time / 3_600_000, y: heapBytes })),
  );
  narrator.say(
    `launcher ${index}: heap ${mebibytes(first.heapBytes)} to ${mebibytes(last.heapBytes)} MiB, ` +
      `slope ${mebibytes(perHour)} ± ${mebibytes(error)} MiB per hour (${samples.length} samples), resident ${mebibytes(last.residentBytes)} MiB, ` +
      `file descriptors ${first.fileDescriptors} to ${last.fileDescriptors}, resources ${first.resources} to ${last.resources}`,
  );
  const problems: string[] = [];
  if (perHour > SLOPE_LIMIT) problems.push(`the heap of launcher ${index} grows by ${mebibytes(perHour)} MiB per hour`);
  const third = Math.ceil(samples.length / 3);
  const kinds = { fileDescriptors: 'open files', resources: 'timers and sockets' } as const;
  for (const kind of ['fileDescriptors', 'resources'] as const) {
    const counts = samples.map((sample) => sample[kind]);
    if (Math.min(...counts.slice(-third)) > Math.max(...counts.slice(0, third))) {
      problems.push(`launcher ${index} has an increasing number of ${kinds[kind]}`);
    }
  }
  return problems;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '15' },
      rate: { type: 'string', default: '25' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const [minutes, rate] = [Number(values.minutes), Number(values.rate)];
  if (!(minutes > 0) || !(rate > 0)) throw new UsageError('--minutes and --rate are positive numbers');
  const problems = await soak(minutes, rate, interruption());
  for (const problem of problems) process.stdout.write(`FAILED: ${problem}\n`);
  if (problems.length === 0) process.stdout.write('No request failed, no record is left, and memory does not grow.\n');
  process.exitCode = problems.length === 0 ? 0 : 1;
}

runCommandLine(HELP, main);
