/** The process of a service: a program with settings of its own, and an endpoint for metrics and probes only. */

import { createRequire } from 'node:module';
import type { ConfigWatcher } from '@nodepool/config';
import {
  systemClock,
  systemRandom,
  type Clock,
  type Logger,
  type Metrics,
  type RandomSource,
  type TaskSupervisor,
} from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { dumpProcess, type ProcessDumpSources } from '../diagnostics/process-dump.js';
import { ProcessMonitor } from '../diagnostics/process-monitor.js';
import { LiveSettings, type SettingsSource } from '../settings/live-settings.js';
import { SettingsError } from '../settings/settings-file.js';
import type { HttpServer } from '../web/http-server.js';
import { processOutput } from './command-line.js';
import { followConfig } from './follow-config.js';
import { processIdentifier } from './hostname.js';
import { runDaemon, type Daemon, type DaemonRun, type DaemonSetup } from './run-daemon.js';
import type * as ServiceEndpoint from './service-endpoint.js';

/** The work of the program, apart from its process. */
export interface Service extends Pick<ProcessDumpSources, 'store'> {
  readonly tasks: TaskSupervisor;
  /** True while it sees all records that it needs. */
  readonly ready: boolean;
  /** May return a promise, which the start of the process waits for. */
  start(): unknown;
  stop(): Promise<void>;
  /** Logs the work in progress. */
  dump(log: Logger): void;
}

export interface ServiceParts {
  readonly zooKeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Name of this process, which no other running process has. */
  readonly identifier: string;
}

interface ServiceOptions<Settings> {
  readonly source: SettingsSource<Settings>;
  /** Creates the service, which follows changes of the settings. */
  readonly create: (parts: ServiceParts, settings: LiveSettings<Settings>) => Service;
}

export type ServiceRun<Settings> = Omit<DaemonRun, 'make'> & ServiceOptions<Settings>;

const loadModule = createRequire(__filename);

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start. */
export async function runService<Settings>(run: ServiceRun<Settings>): Promise<number> {
  const { name, printError = processOutput.err, source } = run;
  let settings: Settings;
  try {
    settings = await source.read();
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    printError(`${name}: ${error.message}\n`);
    return 1;
  }
  return runDaemon({ ...run, make: (setup) => new ServiceDaemon(setup, run, settings) });
}

class ServiceDaemon<Settings> implements Daemon {
  private readonly service: Service;
  private readonly settings: LiveSettings<Settings>;
  private readonly watcher: ConfigWatcher;
  private readonly monitor: ProcessMonitor;
  private web: HttpServer | undefined;

  constructor(
    private readonly setup: DaemonSetup,
    { source, create }: ServiceOptions<Settings>,
    settings: Settings,
  ) {
    const { zooKeeper, load, loaded, log, metrics } = setup;
    const clock = systemClock;
    this.settings = new LiveSettings(settings, {
      ...{ ...source, clock, log, metrics },
      tasks: { run: (name, work) => this.service.tasks.run(name, work) },
    });
    this.service = create(
      { zooKeeper, clock, log, metrics, random: systemRandom, identifier: processIdentifier() },
      this.settings,
    );
    const { tasks } = this.service;
    this.monitor = new ProcessMonitor({ zooKeeper, clock, log, metrics });
    this.watcher = followConfig({
      ...{ load, loaded, clock, log, metrics, zooKeeper, tasks, readAtStart: [] },
      apply: () => undefined,
    });
  }

  async start(): Promise<void> {
    this.monitor.start();
    await this.startWeb();
    await this.service.start();
    await this.settings.start();
    await this.watcher.start();
  }

  reload(): void {
    this.service.tasks.run('reload of the configuration', async () => {
      await Promise.all([this.watcher.reload(), this.settings.reload()]);
    });
  }

  dump(log: Logger): void {
    const { service, monitor } = this;
    const { store, tasks } = service;
    dumpProcess({ store, tasks, eventLoopDelay: () => monitor.eventLoop.read() }, log, (to) => service.dump(to));
  }

  async stop(): Promise<void> {
    await this.watcher.stop();
    await this.settings.stop();
    await this.service.stop();
    await this.web?.stop();
    this.monitor.stop();
    await this.setup.zooKeeper.close();
  }

  /** Serves metrics and probes on a port of their own, because they need no token. */
  private async startWeb(): Promise<void> {
    const { endpoint, log, metrics } = this.setup;
    if (endpoint === undefined) return;
    // Loaded only with a web endpoint, because the libraries of the web server have hundreds of files.
    const { createServiceEndpoint } = loadModule('./service-endpoint.js') as typeof ServiceEndpoint;
    this.web = createServiceEndpoint({ log, metrics, isReady: () => this.service.ready });
    const { port } = await this.web.start(endpoint);
    log.info('Web endpoint listens', { address: endpoint.address, port });
  }
}
