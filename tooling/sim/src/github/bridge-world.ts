/** A world with launchers, a simulated GitHub, and bridges that serve its jobs. */

import { readFile } from 'node:fs/promises';
import type { RandomSource } from '@nodepool/core';
import { scopeOf, type Settings } from '@nodepool/bridge-github';
import { startSimulatedGithub, type JobRequest, type SimulatedGithub } from '@nodepool/simulated-github';
import { SimulatedProcess } from '@nodepool/simulated-process';
import { loggerOfSteps, World, type WorldOptions } from '../world.js';
import type { Site } from '../site.js';
import { BridgeProcess } from './bridge-process.js';
import { RunnerMachines } from './runner-machines.js';

/** Two providers, and nodes that are ready in advance. */
export const BRIDGE_SITE: Site = {
  providers: [
    { name: 'alpha', pools: [{ name: 'main', labels: ['small'], maxServers: 8 }] },
    { name: 'beta', pools: [{ name: 'main', labels: ['small', 'large'], maxServers: 6 }] },
  ],
  minReady: { small: 2 },
  tenants: {},
};

/** Deletion of a record of a node. */
const NODE_RECORD = /^\/nodepool\/nodes\/([^/]+)$/;

type ScaleSetSettings = Settings['installations'][number]['scaleSets'][number];

const SCALE_SET: ScaleSetSettings = {
  ...{ name: 'linux', labels: ['linux'], nodeLabel: 'small', runnerGroup: 'default', minRunners: 0, maxRunners: 20 },
  ...{ priority: 200, tenant: undefined, user: undefined, identity: undefined, runnerFolder: 'r', workFolder: 'w' },
  ...{ environment: {}, startTimeoutMs: 180_000, idleTimeoutMs: 60_000 },
};

export class BridgeWorld {
  /** All bridges, including killed and stopped ones. */
  readonly bridges: BridgeProcess[] = [];
  readonly machines: RunnerMachines;
  /** Numbers of jobs that a user has cancelled. */
  readonly cancelled = new Set<number>();
  private readonly settings: Settings;
  private readonly removeListener: () => void;

  private constructor(
    readonly world: World,
    readonly github: SimulatedGithub,
    private readonly files: ReadonlyMap<string, string>,
  ) {
    const { checker } = world;
    const report = (rule: string, what: string): void => checker.report(rule, what);
    this.machines = new RunnerMachines({
      ...{ github, random: world.random(), report, step: (what) => checker.step(what) },
    });
    this.settings = settingsFor(github);
    this.removeListener = world.server.onCommit((changes) => {
      for (const { path } of changes) {
        const [, node] = NODE_RECORD.exec(path) ?? [];
        if (node !== undefined && !checker.observed.nodes.has(node)) this.machines.destroyed(node);
      }
    });
  }

  static async start(options: WorldOptions): Promise<BridgeWorld> {
    const world = new World(options);
    const github = await startSimulatedGithub({ clock: world.clock, random: world.random() });
    const files = new Map([[github.appKeyFile, await readFile(github.appKeyFile, 'utf8')]]);
    return new BridgeWorld(world, github, files);
  }

  random(): RandomSource {
    return this.world.random();
  }

  startBridge(): BridgeProcess {
    const { world, github, machines, files, settings } = this;
    const { clock, server, checker } = world;
    const name = `bridge-${this.bridges.length + 1}`;
    checker.step(`${name} is started`);
    const bridge = new BridgeProcess(new SimulatedProcess(name, clock), {
      ...{ server, checker, github, machines, files, settings, random: world.random() },
      log: loggerOfSteps(name, checker),
      onServes: (one) => this.serves(one),
    });
    this.bridges.push(bridge);
    return bridge;
  }

  queueJob(more: Partial<JobRequest> = {}): number {
    const job = this.github.queueJob({ repository: 'acme/app', labels: ['linux'], durationMs: 1000, ...more });
    this.world.checker.step(`job ${job} is queued`);
    return job;
  }

  cancelJob(job: number): void {
    this.world.checker.step(`job ${job} is cancelled`);
    this.cancelled.add(job);
    this.github.cancelJob(job);
  }

  async end(): Promise<void> {
    this.removeListener();
    this.world.end();
    for (const { process } of this.bridges) process.kill();
    await this.github.close();
  }

  /** Two bridges: one serves. */
  private serves(bridge: BridgeProcess): void {
    const other = this.bridges.find((each) => each !== bridge && each.isServing);
    if (other !== undefined) this.world.checker.report('G5', `${bridge.name} and ${other.name} serve the scale set`);
  }
}

function settingsFor(github: SimulatedGithub): Settings {
  const scope = scopeOf(`${github.url}/acme`);
  if (scope === undefined) throw new Error('the address is no organization');
  const credentials = {
    kind: 'app',
    ...{ clientId: github.clientId, installationId: github.installations['acme'] ?? 0, keyFile: github.appKeyFile },
  } as const;
  return { installations: [{ name: 'acme', scope, credentials, scaleSets: [SCALE_SET] }] };
}
