/**
 * The environment of the demonstration: ZooKeeper, a cloud, a builder, a launcher, and a store for reading the records.
 */

import { mkdirSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, type Store } from '@nodepool/store';
import { systemRandom, systemClock } from '@nodepool/core';
import { freePorts, startZooKeeper } from '@nodepool/dev-zookeeper';
import {
  configFileOf,
  describeExit,
  labelsOffered,
  Program,
  programPath,
  startBuilder,
  startLauncher,
  writeDaemonConfig,
  type Narrator,
} from '@nodepool/harness';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';
import { cloudOfEnvironment, simulatedCloud } from './cloud.js';
import { machineMirror } from './mirror.js';
import { prepareForBuild } from './prerequisites.js';
import { builderConfig, IMAGE, launcherConfig, type BuilderChanges, type SiteOptions } from './site.js';

const START_DEADLINE_MS = 60_000;
const COMMAND_DEADLINE_MS = 120_000;
/** Time in which a stopped builder ends its build (ms). */
const STOP_GRACE_MS = 60_000;

export interface EnvironmentOptions {
  readonly simulated: boolean;
  readonly flavor: string;
  readonly network: string;
  /** Path of the stand-in for diskimage-builder; undefined for diskimage-builder itself. */
  readonly dibCmd: string | undefined;
  /** If true, the folder with the logs is kept. */
  readonly keep: boolean;
}

export class DemoEnvironment {
  private readonly undo: (() => Promise<unknown>)[] = [];
  private changes: BuilderChanges = {};
  private launcher: Program | undefined;

  private constructor(
    readonly folder: string,
    private readonly site: SiteOptions,
    readonly zooKeeper: ZooKeeper,
    readonly store: Store,
    readonly builder: Program,
  ) {}

  /** Starts all parts except the launcher. If it rejects, it has stopped what it started. */
  static async build(
    options: EnvironmentOptions,
    narrator: Narrator,
    interrupted: AbortSignal,
  ): Promise<DemoEnvironment> {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-demo-image-'));
    const undo: (() => Promise<unknown>)[] = [];
    if (!options.keep) undo.push(() => rm(folder, { recursive: true, force: true }));
    try {
      const changes: BuilderChanges = options.dibCmd === undefined ? {} : { dibCmd: options.dibCmd };
      // Refuses an environment without a cloud before anything is installed.
      const cloud = options.simulated ? await simulatedCloud() : cloudOfEnvironment();
      undo.push(() => cloud.stop());
      if (options.dibCmd === undefined) await prepareForBuild(folder, narrator);
      mkdirSync(join(folder, 'tmp'));
      interrupted.throwIfAborted();
      narrator.say(`images go to ${cloud.what}`);
      const server = await startZooKeeper();
      undo.push(() => server.stop());
      const zooKeeper = connect({ servers: server.servers });
      undo.push(() => zooKeeper.close());
      await zooKeeper.connected({ signal: interrupted, timeoutMs: START_DEADLINE_MS });
      const store = openStore(zooKeeper, { clock: systemClock, random: systemRandom, identifier: 'demo-image' });
      undo.push(async () => store.close());
      store.start();
      await store.ready({ signal: interrupted, timeoutMs: START_DEADLINE_MS });
      const { flavor, network, dibCmd } = options;
      const mirror = dibCmd === undefined ? machineMirror() : undefined;
      const site: SiteOptions = { folder, zooKeeper: server.servers, cloud, flavor, network, mirror };
      const env = variablesOf(site);
      const builder = await startBuilder({ folder, config: builderConfig(site, changes), env });
      undo.push(() => builder.stop(STOP_GRACE_MS));
      narrator.say(`nodepool-builder runs (process ${builder.pid}) with ${configFileOf({ folder, name: 'builder' })}`);
      const environment = new DemoEnvironment(folder, site, zooKeeper, store, builder);
      environment.changes = changes;
      environment.undo.push(...undo);
      return environment;
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw error;
    }
  }

  /** Resolves once the launcher offers its label. */
  async startLauncher(narrator: Narrator, interrupted: AbortSignal): Promise<void> {
    const { folder, site } = this;
    const [port = 0] = await freePorts(1);
    const launcher = await startLauncher({ folder, config: launcherConfig(site, port), env: variablesOf(site) });
    this.launcher = launcher;
    this.undo.push(() => launcher.stop());
    narrator.say(`nodepool-launcher runs (process ${launcher.pid})`);
    await launcher.while('offers its label', START_DEADLINE_MS, (signal) =>
      labelsOffered(this.zooKeeper, [IMAGE], AbortSignal.any([signal, interrupted])),
    );
  }

  /** Changes the configuration of the builder, which reloads it while running. */
  async changeBuilder(changes: BuilderChanges): Promise<void> {
    this.changes = { ...this.changes, ...changes };
    const { folder, site } = this;
    await writeDaemonConfig({ folder, name: 'builder', config: builderConfig(site, this.changes) });
    this.builder.signal('SIGHUP');
  }

  /** Runs the command line and resolves with its output. Rejects if it fails. */
  async nodepool(...args: string[]): Promise<string> {
    const { folder, site } = this;
    const logFile = join(folder, `nodepool-${args[0] ?? ''}-${systemRandom.uuidHex()}.log`);
    const command = await Program.start({
      name: `nodepool ${args.join(' ')}`,
      command: process.execPath,
      args: [programPath('nodepool'), '-c', configFileOf({ folder, name: 'builder' }), ...args],
      logFile,
      cwd: folder,
      env: variablesOf(site),
    });
    const exit = await command.ends(COMMAND_DEADLINE_MS);
    if (exit.code !== 0) throw new Error(`${command.name}: ${describeExit(exit)}\n${command.logTail()}`);
    return command.logTail();
  }

  /** Resolves like `work`. Rejects if a daemon ends before. */
  async while<T>(what: string, deadlineMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { launcher, builder } = this;
    return await builder.while(what, deadlineMs, (signal) =>
      launcher === undefined
        ? work(signal)
        : launcher.while(what, deadlineMs, (both) => work(AbortSignal.any([signal, both]))),
    );
  }

  async clear(): Promise<void> {
    for (const step of this.undo.reverse()) await step();
  }
}

function variablesOf({ cloud }: SiteOptions): Readonly<Record<string, string>> {
  return { OS_CLIENT_CONFIG_FILE: cloud.cloudsYaml };
}
