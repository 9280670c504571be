/** A bridge for GitHub Actions in this process, whose runners start at once on their nodes, without ssh. */

import { readFile } from 'node:fs/promises';
import { silentLogger, silentMetrics, systemClock, systemRandom, untilAborted } from '@nodepool/core';
import { Bridge, scopeOf, type RunnerEnd, type RunnerProcesses, type Settings } from '@nodepool/bridge-github';
import { startSimulatedGithub, type InProcessRunner, type SimulatedGithub } from '@nodepool/simulated-github';
import { connect, sleep, type ZooKeeper } from '@nodepool/zookeeper';
import { LABEL } from '../environment.js';

/** Longer than a measurement (ms). */
const JOB_MS = 3_600_000;
const LOOK_MS = 50;
/** `max-runners` of the scale set. */
const MAX_RUNNERS = 2000;
const RUNS = /^Job \d+ runs on /;

export class JobSite {
  /** Called when a job begins to run. */
  private onRuns: () => void = () => undefined;

  private constructor(
    private readonly github: SimulatedGithub,
    private readonly zooKeeper: ZooKeeper,
    private readonly bridge: Bridge,
  ) {}

  /** Resolves once the bridge has a session. */
  static async start(servers: string, signal: AbortSignal): Promise<JobSite> {
    const running: JobSite[] = [];
    const print = ({ text }: { readonly text: string }): void => {
      if (RUNS.test(text)) running.at(0)?.onRuns();
    };
    const github = await startSimulatedGithub({ clock: systemClock, random: systemRandom, print });
    const zooKeeper = connect({ servers });
    const bridge = new Bridge({
      ...{ zooKeeper, clock: systemClock, random: systemRandom, log: silentLogger, metrics: silentMetrics },
      ...{ settings: settingsFor(github), identifier: 'bench', version: '0.0.0', processes: processesOf(github) },
      readFile: (file) => readFile(file, 'utf8'),
    });
    bridge.start();
    const started = new JobSite(github, zooKeeper, bridge);
    running.push(started);
    await started.until(() => github.inspect.scaleSets()[0]?.session?.capacity === MAX_RUNNERS, signal);
    return started;
  }

  /** Queues jobs at once. Resolves with the time (ms) until each of them runs. */
  async run(count: number, signal: AbortSignal): Promise<number> {
    const { github } = this;
    const job = { repository: 'acme/app', labels: ['bench'], durationMs: JOB_MS } as const;
    let running = 0;
    const allRun = new Promise<void>((resolve) => {
      this.onRuns = () => {
        running += 1;
        if (running === count) resolve();
      };
    });
    const began = systemClock.monotonic();
    const numbers = Array.from({ length: count }, () => github.queueJob(job));
    await untilAborted(allRun, signal);
    const tookMs = systemClock.monotonic() - began;
    for (const number of numbers) github.cancelJob(number);
    await this.until(() => github.inspect.runners().length === 0, signal);
    return tookMs;
  }

  async stop(): Promise<void> {
    await this.bridge.stop();
    await this.zooKeeper.close();
    await this.github.close();
  }

  private async until(isMet: () => boolean, signal: AbortSignal): Promise<void> {
    while (!isMet()) await sleep(systemClock, LOOK_MS, signal);
  }
}

function processesOf(github: SimulatedGithub): RunnerProcesses {
  const runners = new Map<string, InProcessRunner>();
  const ended = async (runner: string): Promise<RunnerEnd> => {
    const process = runners.get(runner);
    if (process === undefined) return { kind: 'absent' };
    return { kind: 'ended', status: (await process.ended) === 'exited' ? 0 : 1, log: '' };
  };
  return {
    on: () => ({
      start: async ({ runner }, secret, events) => {
        runners.set(runner, github.startRunner(secret));
        events.onStarted();
        events.onOnline();
        return await ended(runner);
      },
      attach: (runner) => ended(runner),
      stop: (runner) => {
        runners.get(runner)?.kill();
        return Promise.resolve(true);
      },
      close: () => undefined,
    }),
    close: () => undefined,
  };
}

function settingsFor(github: SimulatedGithub): Settings {
  const scope = scopeOf(`${github.url}/acme`);
  if (scope === undefined) throw new Error('the address is no organization');
  const credentials = {
    kind: 'app',
    ...{ clientId: github.clientId, installationId: github.installations['acme'] ?? 0, keyFile: github.appKeyFile },
  } as const;
  const scaleSet = {
    ...{
      name: 'bench',
      labels: ['bench'],
      nodeLabel: LABEL,
      runnerGroup: 'default',
      minRunners: 0,
      maxRunners: MAX_RUNNERS,
    },
    ...{ priority: 200, tenant: undefined, user: undefined, identity: undefined, runnerFolder: 'r', workFolder: 'w' },
    ...{ environment: {}, startTimeoutMs: 600_000, idleTimeoutMs: 1000 },
  };
  return { installations: [{ name: 'acme', scope, credentials, scaleSets: [scaleSet] }] };
}
