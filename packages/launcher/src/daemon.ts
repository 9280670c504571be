/** The parts of a running launcher process, from start to stop. */

import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import type { Daemon, DaemonSetup } from '@nodepool/daemon';
import {
  BlockWatch,
  EventLoopMonitor,
  followConfig,
  HeapPolicy,
  hostForClients,
  processIdentifier,
  reportProcess,
  superviseTasks,
} from '@nodepool/daemon';
import { nextTurn, packageVersion, systemClock, systemRandom, type Logger, type TaskSupervisor } from '@nodepool/core';
import { openStore, type Store, type WebEndpoint } from '@nodepool/store';
import type { ConfigWatcher } from '@nodepool/config';
import { DecisionLog, RecentFailures, Recorder, TimelineSpans } from '@nodepool/status';
import { NodeScanner } from './launch/scan/node-scanner.js';
import { Launcher } from './launcher.js';
import { EnsembleMetrics } from './metrics/ensemble-metrics.js';
import { reportQueues, reportSuspensions } from './metrics/queue-metrics.js';
import { dumpStacks } from './stack-dump.js';
import type * as Web from '@nodepool/status/web';

const loadModule = createRequire(__filename);
/** Each is loaded in a turn of the event loop of its own: together they take 30 ms. */
const WEB_PARTS = ['node:http', 'node:assert', '@nodepool/daemon/web', '@nodepool/status/web'];

export interface LauncherDaemonOptions extends DaemonSetup {
  readonly backfillWindowMs: number;
  /** Directory in which the history survives a restart; undefined keeps it in memory. */
  readonly stateDir: string | undefined;
  /** Fully qualified name of this host. */
  readonly fqdn: string;
}

export class LauncherDaemon implements Daemon {
  private readonly log: Logger;
  private readonly tasks: TaskSupervisor;
  private readonly store: Store;
  private readonly launcher: Launcher;
  private readonly watcher: ConfigWatcher;
  private web: Web.WebServer | undefined;
  private readonly heapPolicy = new HeapPolicy();
  private readonly eventLoop = new EventLoopMonitor(() => this.heapPolicy.beat());
  private readonly blockWatch: BlockWatch;
  private readonly ensembleMetrics: EnsembleMetrics;
  private readonly recorder: Recorder;
  private readonly failures = new RecentFailures(systemClock);
  private readonly decisions = new DecisionLog({ clock: systemClock });
  /** Undefined while tracing is off. */
  private readonly spans: TimelineSpans | undefined;
  private endReports: readonly (() => void)[] = [];

  constructor(private readonly options: LauncherDaemonOptions) {
    const clock = systemClock;
    const random = systemRandom;
    const { zooKeeper, load, loaded, metrics } = options;
    const log = this.failures.watch(options.log);
    const identifier = processIdentifier();
    this.log = log;
    this.tasks = superviseTasks(clock, log);
    this.store = openStore(zooKeeper, { clock, random, identifier, log });
    this.recorder = new Recorder({
      ...{ store: this.store, clock, log, metrics },
      activity: () => this.launcher.activity(),
      summaries: () => this.launcher.summaries(),
      stateDir: options.stateDir,
      providers: () => this.watcher.config.providers,
      reports: (id, poolId) => this.launcher.reports(id, poolId),
    });
    const { timelines } = this.recorder;
    const { tracing } = options;
    this.spans =
      tracing === undefined ? undefined : new TimelineSpans({ tracing, clock, store: this.store, timelines });
    this.launcher = new Launcher({
      store: this.store,
      clock,
      random,
      log: this.spans?.watch(log) ?? log,
      tasks: this.tasks,
      scanner: new NodeScanner({ clock }),
      hostname: hostname(),
      fqdn: options.fqdn,
      version: packageVersion(__dirname),
      metrics: this.recorder.metrics,
      decisions: this.decisions,
      timelines: this.spans ?? timelines,
      traces: this.spans,
      backfillWindowMs: options.backfillWindowMs,
    });
    const { store, tasks } = this;
    this.ensembleMetrics = new EnsembleMetrics({ store, nodes: this.recorder.nodes, metrics, clock, log, identifier });
    this.watcher = followConfig({
      load,
      loaded,
      clock,
      tasks,
      log,
      ...{ metrics, zooKeeper },
      readAtStart: options.endpoint === undefined ? [] : ['webapp'],
      apply: (config) => this.launcher.apply(config),
    });
    this.blockWatch = new BlockWatch({
      log,
      eventLoop: this.eventLoop,
      driverPackages: () => this.watcher.config.driverPackages,
    });
  }

  private createWeb(): Web.WebServer {
    const { failures, decisions } = this;
    // Loaded only with a web endpoint, because the libraries of the web server have hundreds of files.
    const { createWebServer } = loadModule('@nodepool/status/web') as typeof Web;
    return createWebServer({
      store: this.store,
      log: this.log,
      clock: systemClock,
      isReady: () => this.launcher.ready,
      metrics: this.options.metrics,
      explain: {
        ...{ decisions, activity: () => this.launcher.activity(), timelines: this.recorder.timelines },
        queuePosition: (id) => this.launcher.queuePosition(id),
        readyTarget: (label) => this.launcher.readyTarget(label),
      },
      status: {
        hostname: hostname(),
        version: packageVersion(__dirname),
        config: () => this.watcher.config,
        problems: () => this.watcher.problems,
        refusedSince: () => this.watcher.refusedSince,
        failures,
        recorder: this.recorder,
        capacity: () => this.launcher.capacity(),
        eventLoopDelay: () => this.eventLoop.read(),
      },
    });
  }

  /** Starts the launcher. Rejects if the web endpoint cannot listen; everything else starts in the background. */
  async start(): Promise<void> {
    const { store, eventLoop } = this;
    const { loaded, metrics, fqdn, zooKeeper } = this.options;
    const { config } = loaded;
    eventLoop.start();
    this.blockWatch.start();
    this.endReports = [
      reportProcess({ metrics, zooKeeper, eventLoop }),
      reportQueues({ metrics, zooKeeper, hostname: fqdn }),
      reportSuspensions(metrics, store.suspensions),
    ];
    await this.recorder.start();
    if (this.spans !== undefined) this.endReports = [...this.endReports, this.spans.start()];
    store.start();
    this.ensembleMetrics.start();
    await this.launcher.start(config, await this.startWeb());
    await this.watcher.start();
  }

  /** Returns the address for clients on other machines; undefined without a web endpoint. */
  private async startWeb(): Promise<WebEndpoint | undefined> {
    const { endpoint, fqdn } = this.options;
    if (endpoint === undefined) return undefined;
    for (const part of WEB_PARTS) {
      await nextTurn();
      loadModule(part);
    }
    await nextTurn();
    this.web = this.createWeb();
    await nextTurn();
    const { port } = await this.web.start(endpoint);
    this.log.info('Web endpoint listens', { address: endpoint.address, port });
    return { host: hostForClients(endpoint.address, fqdn), port };
  }

  reload(): void {
    this.tasks.run('reload of the configuration', async () => {
      await this.watcher.reload();
    });
  }

  dump(log: Logger): void {
    const { store, tasks, launcher, eventLoop } = this;
    dumpStacks({ store, tasks, activity: () => launcher.activity(), eventLoopDelay: () => eventLoop.read() }, log);
  }

  /** Stops the launcher and releases its locks, so that work in progress can be resumed. */
  async stop(): Promise<void> {
    await this.watcher.stop();
    await this.web?.stop();
    await this.launcher.stop();
    await this.ensembleMetrics.stop();
    await this.recorder.stop();
    for (const end of this.endReports) end();
    this.eventLoop.stop();
    await this.blockWatch.stop();
    this.store.close();
    await this.options.zooKeeper.close();
  }
}
