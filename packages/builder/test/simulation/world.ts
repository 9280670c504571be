/** The simulated world of builders: two machines, one ZooKeeper, clouds, an operator, all on one clock and one seed. */

import { openStore, type Store } from '@nodepool/store';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { TaskSupervisor, type ImageManager, type LogFields, type Logger, type RandomSource } from '@nodepool/core';
import { SimulatedProcess } from '@nodepool/simulated-process';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { Builder, type DiskImageFiles } from '../../src/index.js';
import { ImageCloud, imageDriver, NO_FAULTS } from '../support/image-cloud.js';
import { ScriptedDib, type Ending } from '../support/scripted-dib.js';
import { ScriptedBootTester, ScriptedSources } from '../support/scripted-tests.js';
import { nodepoolConfig, type Machine, type Site } from '../support/world.js';
import { MemoryDisk } from '../support/memory-disk.js';
import { BAD_PROVIDER, Checker } from './checker.js';
import { judge, withTests } from './judge.js';

const MINUTE = 60_000;
const SESSION_TIMEOUT_MS = 30_000;
const MAX_LATENCY_MS = 5;

const UPLOAD = { imageUploadTimeoutMs: 30 * MINUTE };

/** A site that rebuilds its images continuously. */
export const BUSY_SITE: Site = siteOf(20 * MINUTE);
/** A site that reaches a stable state. */
export const CALM_SITE: Site = siteOf(100 * 24 * 60 * MINUTE);

function siteOf(rebuildAgeMs: number): Site {
  const image = { rebuildAgeMs, buildTimeoutMs: 10 * MINUTE };
  return {
    images: { debian: image, fedora: { ...image, formats: ['raw'], deleteAfterUpload: true, keepFormats: ['raw'] } },
    providers: {
      one: { images: ['debian', 'fedora'], upload: UPLOAD },
      two: { images: ['debian', 'fedora'], upload: UPLOAD, format: 'raw' },
      [BAD_PROVIDER]: { images: ['debian'], upload: UPLOAD },
    },
  };
}

/** A defect of every builder in a run. */
export interface Mutation {
  readonly name: string;
  /** The rule that the defect violates. */
  readonly rule: string;
  /** The first seed to run, which detects it. Default 1. */
  readonly firstSeed?: number;
  /** True if the defect shows only in worlds whose images have tests. */
  readonly withTests?: boolean;
  site?(site: Site): Site;
  store?(store: Store): Store;
  files?(files: DiskImageFiles): DiskImageFiles;
  manager?(manager: ImageManager): ImageManager;
}

export class BuilderProcess {
  readonly process: SimulatedProcess;
  readonly zk: ZooKeeper;
  readonly dib: ScriptedDib;
  readonly bootTester: ScriptedBootTester;
  readonly builder: Builder;

  constructor(
    private readonly world: SimulatedBuilders,
    readonly machine: Machine,
    site: Site,
    random: RandomSource,
  ) {
    const process = new SimulatedProcess(machine.name, world.clock);
    this.process = process;
    const { clock } = process;
    this.zk = world.server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS, clock, random });
    this.dib = new ScriptedDib(machine.disk, clock);
    this.bootTester = new ScriptedBootTester(clock);
    const log = stepLogger(machine.name, world.checker);
    const store = openStore(this.zk, { clock, random, identifier: machine.name, log });
    const { mutation, checker } = world;
    const tasks = new TaskSupervisor(clock, (task, error) => {
      if (!process.dead) checker.report('X', `${machine.name} failed to ${task}: ${String(error)}`);
    });
    this.builder = new Builder({
      store: mutation?.store?.(store) ?? store,
      ...{ clock, random, log, tasks },
      hostname: machine.name,
      fqdn: `${machine.name}.example.org`,
      version: '0.0.0',
      builderId: machine.builderId,
      files: mutation?.files?.(machine.disk) ?? machine.disk,
      creator: this.dib,
      bootTester: this.bootTester,
      sources: new ScriptedSources(machine.disk),
      hook: () => Promise.resolve(),
      uploadWorkers: 2,
    });
    store.start();
    this.builder.start(this.configOf(site));
  }

  apply(site: Site): void {
    this.builder.apply(this.configOf(site));
  }

  /** Kills the process without closing its session, which lives until it expires. */
  kill(): void {
    this.process.kill();
    this.world.server.partition(this.zk, 'cut');
    this.world.cloud.forget(this.process.clock);
  }

  pause(): void {
    this.process.pause();
    this.world.server.partition(this.zk, 'silent');
  }

  resume(): void {
    this.process.resume();
    this.world.server.heal(this.zk);
  }

  private configOf(site: Site): ReturnType<typeof nodepoolConfig> {
    const { cloud, mutation } = this.world;
    const driver = imageDriver((provider) => {
      const manager = cloud.manager(provider, this.process.clock);
      return mutation?.manager?.(manager) ?? manager;
    });
    const tested = this.world.withTests ? withTests(site) : site;
    return nodepoolConfig(mutation?.site?.(tested) ?? tested, driver);
  }
}

export interface WorldOptions {
  readonly seed: number;
  readonly mutation?: Mutation | undefined;
  /** The only rule to check. Default: all of them. */
  readonly only?: string | undefined;
  /** True if images have tests. Default: those of the mutation. */
  readonly withTests?: boolean | undefined;
  /** Called for every step. */
  readonly onStep?: ((step: string) => void) | undefined;
}

export class SimulatedBuilders {
  readonly clock = new VirtualClock();
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ImageCloud;
  readonly checker: Checker;
  readonly machines: readonly Machine[];
  readonly mutation: Mutation | undefined;
  readonly withTests: boolean;
  readonly builders = new Map<string, BuilderProcess>();
  /** Configurations of machines that differ from the complete one. */
  readonly sites = new Map<string, Site>();
  /** Returns the outcome of the next builds. */
  ending: () => Ending = () => 'works';
  /** The operator's store, which belongs to the world and not to a process. */
  readonly operator: Store;
  private readonly seeds: RandomSource;

  constructor({ seed, mutation, only, onStep, withTests: hasTests = mutation?.withTests ?? false }: WorldOptions) {
    this.seeds = seededRandom(seed);
    this.mutation = mutation;
    this.withTests = hasTests;
    const network = this.random();
    this.server = new SimulatedZooKeeperServer({
      clock: this.clock,
      latencyMs: () => Math.floor(network.next() * MAX_LATENCY_MS),
    });
    this.cloud = new ImageCloud(this.random());
    this.cloud.uploadMs = [5000, 3 * MINUTE];
    this.cloud.faultsOf.set(BAD_PROVIDER, { ...NO_FAULTS, hangs: 1 });
    this.machines = ['builder-1', 'builder-2'].map((name) => ({
      name,
      builderId: `id-of-${name}`,
      disk: new MemoryDisk(),
    }));
    this.checker = new Checker(this, { only, onStep });
    const zk = this.server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS });
    this.operator = openStore(zk, { clock: this.clock, random: this.random(), identifier: 'operator' });
    this.operator.start();
    if (hasTests) judge(this, seededRandom(seed + 1_000_000));
  }

  /** Returns a separate source, so that one part's draws do not change another's. */
  random(): RandomSource {
    return seededRandom(Math.floor(this.seeds.next() * 2 ** 32));
  }

  start(machine: Machine, site: Site): BuilderProcess {
    this.checker.step(`${machine.name} is started`);
    const builder = new BuilderProcess(this, machine, site, this.random());
    const random = this.random();
    builder.dib.ending = () => this.ending();
    builder.dib.durationMs = () => 30_000 + Math.floor(random.next() * 4 * MINUTE);
    if (this.withTests) builder.bootTester.passes = () => random.next() < 0.8;
    this.builders.set(machine.name, builder);
    return builder;
  }

  configure(builder: BuilderProcess, site: Site): void {
    this.sites.set(builder.machine.name, site);
    builder.apply(site);
  }

  /** Returns true if every builder's configuration has listed the image at the provider for some time. */
  isListedEverywhere(provider: string, image: string): boolean {
    return [...this.sites.values()].every((site) => site.providers[provider]?.images.includes(image) === true);
  }

  /**
   * Runs timers until the condition holds, a rule is violated, or the time is over. Resolves with false if it does not
   * hold.
   */
  async until(condition: () => boolean, limitMs: number): Promise<boolean> {
    const reached = await this.clock.runUntil(() => this.checker.violation !== undefined || condition(), limitMs);
    return reached && this.checker.violation === undefined;
  }

  end(): void {
    this.checker.close();
    for (const { process } of this.builders.values()) process.kill();
    this.server.stop();
  }
}

/** Returns a logger that records each line of a builder as a step. */
function stepLogger(name: string, checker: Checker, fixed: LogFields = {}): Logger {
  const say = (message: string, fields: LogFields = {}): void => {
    const about = Object.entries({ ...fixed, ...fields })
      .filter(([key]) => !['formats', 'file', 'files'].includes(key))
      .map(([key, value]) => `${key}=${value instanceof Error ? value.message : String(value)}`);
    checker.step(`${name} says: ${message} ${about.join(' ')}`);
  };
  return {
    debug: () => undefined,
    info: say,
    warn: say,
    error: (message, error, fields) => say(message, { ...fields, error }),
    with: (fields) => stepLogger(name, checker, { ...fixed, ...fields }),
    named: () => stepLogger(name, checker, fixed),
  };
}
