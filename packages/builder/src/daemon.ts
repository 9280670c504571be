/** Creates the resources of a builder process and stops them. */

import { hostname } from 'node:os';
import {
  apiCallSpan,
  BlockWatch,
  followConfig,
  fullyQualifiedHostname,
  hostForClients,
  processIdentifier,
  ProcessMonitor,
  spansOfDurations,
  superviseTasks,
  type Daemon,
  type DaemonSetup,
} from '@nodepool/daemon';
import type { ConfigWatcher, NodepoolConfig } from '@nodepool/config';
import type { HttpServer } from '@nodepool/daemon/web';
import { openStore, type Store, type WebEndpoint } from '@nodepool/store';
import { packageVersion, systemClock, systemRandom, type Logger, type TaskSupervisor } from '@nodepool/core';
import { QemuBootTester } from './boot-test/qemu-boot-tester.js';
import { Builder } from './builder.js';
import { builderIdOf, ImagesDirError } from './builder-id.js';
import { DibProcesses } from './dib-process.js';
import { ImagesDir } from './images-dir.js';
import { runPostUploadHook } from './post-upload-hook.js';
import { BUILD_DURATION, UPLOAD_DURATION } from './builder-metrics.js';
import type { BuilderFlags } from './program.js';
import { dumpBuilder } from './stack-dump.js';
import { FetchedImages } from './source/fetched-images.js';
import { createStatusServer } from './status-server.js';

/** Names of spans by the durations that become spans. */
const SPANS = { [BUILD_DURATION.name]: 'image build', [UPLOAD_DURATION.name]: 'image upload' };

export type BuilderDaemonOptions = DaemonSetup & Pick<BuilderFlags, 'buildWorkers' | 'uploadWorkers'>;

/** Creates the builder. Rejects with `ImagesDirError` if the images folder is not usable. */
export async function createBuilderDaemon(options: BuilderDaemonOptions): Promise<Daemon> {
  const { imagesDir } = options.loaded.config;
  try {
    if (imagesDir === undefined)
      throw new ImagesDirError('images-dir is not in the configuration; the builder needs it');
    const builderId = await builderIdOf(imagesDir, systemRandom);
    return new BuilderDaemon(options, imagesDir, { builderId, fqdn: await fullyQualifiedHostname() });
  } catch (error) {
    await options.zooKeeper.close();
    throw error;
  }
}

class BuilderDaemon implements Daemon {
  private readonly tasks: TaskSupervisor;
  private readonly store: Store;
  private readonly builder: Builder;
  private readonly watcher: ConfigWatcher;
  private readonly monitor: ProcessMonitor;
  private readonly blockWatch: BlockWatch;
  private readonly builderId: string;
  private readonly fqdn: string;
  private config: NodepoolConfig;
  private web: HttpServer | undefined;

  constructor(
    private readonly options: BuilderDaemonOptions,
    imagesDir: string,
    { builderId, fqdn }: { readonly builderId: string; readonly fqdn: string },
  ) {
    this.builderId = builderId;
    this.fqdn = fqdn;
    const clock = systemClock;
    const random = systemRandom;
    const { zooKeeper, load, loaded, log, metrics, tracing } = options;
    this.config = loaded.config;
    const tasks = superviseTasks(clock, log);
    this.tasks = tasks;
    const store = openStore(zooKeeper, { clock, random, identifier: processIdentifier(), log });
    this.store = store;
    this.monitor = new ProcessMonitor({ zooKeeper, clock, log, metrics });
    const creator = new DibProcesses(clock, imagesDir, () => ({
      folder: this.config.buildLogDir,
      retention: this.config.buildLogRetention,
    }));
    this.builder = new Builder({
      ...{ store, clock, random, log, tasks, builderId, creator },
      metrics: tracing === undefined ? metrics : spansOfDurations(metrics, tracing, clock, SPANS),
      traces:
        tracing === undefined
          ? undefined
          : { apiCall: (provider, call) => apiCallSpan({ tracing, clock }, provider, call) },
      hostname: hostname(),
      fqdn,
      version: packageVersion(__dirname),
      files: new ImagesDir(imagesDir),
      hook: runPostUploadHook,
      bootTester: new QemuBootTester(clock, imagesDir, creator),
      sources: new FetchedImages(clock, imagesDir),
      buildWorkers: options.buildWorkers,
      uploadWorkers: options.uploadWorkers,
    });
    const { eventLoop } = this.monitor;
    this.blockWatch = new BlockWatch({ log, eventLoop, driverPackages: () => this.config.driverPackages });
    const apply = (config: NodepoolConfig): void => this.apply(config);
    this.watcher = followConfig({
      ...{ load, loaded, clock, tasks, log, metrics, zooKeeper, apply },
      readAtStart: ['images-dir'],
    });
    log.info('Builder', { builder_id: builderId, images_dir: imagesDir });
  }

  async start(): Promise<void> {
    this.monitor.start();
    this.blockWatch.start();
    this.store.start();
    this.builder.start(this.config, await this.startWeb());
    await this.watcher.start();
  }

  async stop(): Promise<void> {
    await this.watcher.stop();
    await this.builder.stop();
    // Monitoring sees the builds and uploads that a stop waits for.
    await this.web?.stop();
    this.monitor.stop();
    await this.blockWatch.stop();
    this.store.close();
    await this.options.zooKeeper.close();
  }

  /** Returns the address for clients on other machines; undefined without a web endpoint. */
  private async startWeb(): Promise<WebEndpoint | undefined> {
    const { endpoint, log, metrics } = this.options;
    if (endpoint === undefined) return undefined;
    const { store, builderId, fqdn } = this;
    const { eventLoop } = this.monitor;
    this.web = createStatusServer({
      ...{ store, log, metrics, builderId, eventLoop, clock: systemClock, hostname: hostname() },
      version: packageVersion(__dirname),
      config: () => this.config,
      activity: () => this.builder.activity(),
    });
    const { port } = await this.web.start(endpoint);
    log.info('Web endpoint listens', { address: endpoint.address, port });
    return { host: hostForClients(endpoint.address, fqdn), port };
  }

  reload(): void {
    this.tasks.run('reload of the configuration', async () => {
      await this.watcher.reload();
    });
  }

  dump(log: Logger): void {
    const { store, tasks, builder } = this;
    const { eventLoop } = this.monitor;
    dumpBuilder({ store, tasks, activity: () => builder.activity(), eventLoopDelay: () => eventLoop.read() }, log);
  }

  abort(): void {
    this.builder.abort();
  }

  private apply(config: NodepoolConfig): void {
    this.config = config;
    this.builder.apply(config);
  }
}
