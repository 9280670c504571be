/** A daemon's first connection to ZooKeeper. Meanwhile the configuration is followed, and a web endpoint explains. */

import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigWatcher, LoadOptions, LoadResult, NodepoolConfig, ZooKeeperConfig } from '@nodepool/config';
import { reasonOf, type Clock, type Logger, type TaskSupervisor, type Timer } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import { ZOOKEEPER_CONNECTED } from '../metrics/process-metrics.js';
import type { EndpointAddress, HttpServer } from '../web/http-server.js';
import { superviseTasks } from './background-tasks.js';
import { watchConfig } from './follow-config.js';
import type * as WaitingEndpoint from './waiting-endpoint.js';

/** Connects to an ensemble. Rejects if that cannot succeed, or with the signal's reason. */
export type Connect = (
  ensemble: ZooKeeperConfig,
  options: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly signal: AbortSignal;
    /** Called with the reason of each failed attempt. */
    readonly onFailure: (reason: string) => void;
  },
) => Promise<ZooKeeper>;

export interface FirstConnectionOptions {
  /** e.g. `nodepool-launcher`. */
  readonly name: string;
  readonly connect: Connect;
  /** Returns the address of the web endpoint; undefined if it is disabled. */
  readonly webEndpoint: (config: NodepoolConfig) => EndpointAddress | undefined;
  readonly load: LoadOptions;
  readonly loaded: Extract<LoadResult, { ok: true }>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly signal: AbortSignal;
}

/** A client with a session, and the configuration that it uses. */
export interface Connected {
  readonly zooKeeper: ZooKeeper;
  readonly loaded: Extract<LoadResult, { ok: true }>;
}

/** A usual connection takes less (ms), so that a usual start needs no second web endpoint. */
const USUAL_CONNECTION_MS = 250;

const loadModule = createRequire(__filename);

export class FirstConnection {
  private readonly tasks: TaskSupervisor;
  private readonly watcher: ConfigWatcher;
  private readonly since: number;
  /** Aborts with the failure of the web endpoint. */
  private readonly failed = new AbortController();
  /** Aborts when the configuration has another ensemble. */
  private attempt = new AbortController();
  private ensemble: ZooKeeperConfig;
  private reason: string | undefined;
  private endpoint: HttpServer | undefined;
  private waiting: Promise<void> | undefined;

  constructor(private readonly options: FirstConnectionOptions) {
    const { clock, log, loaded } = options;
    this.tasks = superviseTasks(clock, log);
    this.watcher = watchConfig({ ...options, tasks: this.tasks, apply: (config) => this.apply(config) });
    this.ensemble = loaded.config.zookeeper;
    this.since = clock.now();
  }

  /** Resolves once connected. Rejects if that cannot succeed, or with the reason of the signal. */
  async connected(): Promise<Connected> {
    this.options.metrics.set(ZOOKEEPER_CONNECTED, {}, 0);
    const timer: Timer = this.options.clock.schedule(USUAL_CONNECTION_MS, () => {
      this.waiting = this.wait().catch((error: unknown) => this.failed.abort(error));
    });
    try {
      let connected = await this.attemptOnce();
      while (connected === undefined) connected = await this.attemptOnce();
      return connected;
    } finally {
      timer.cancel();
      await this.waiting;
      await this.watcher.stop();
      await this.endpoint?.stop();
    }
  }

  /** Reads the configuration again, in the background. */
  reload(): void {
    this.tasks.run('reload of the configuration', async () => {
      await this.watcher.reload();
    });
  }

  /** Resolves with undefined if the configuration has another ensemble by now. */
  private async attemptOnce(): Promise<Connected | undefined> {
    const { connect, clock, log, signal } = this.options;
    const attempt = new AbortController();
    this.attempt = attempt;
    const ended = AbortSignal.any([signal, attempt.signal, this.failed.signal]);
    try {
      const zooKeeper = await connect(this.ensemble, {
        ...{ clock, log },
        signal: ended,
        onFailure: (reason) => {
          this.reason = reason;
        },
      });
      if (!attempt.signal.aborted) return { zooKeeper, loaded: this.watcher.loaded };
      await zooKeeper.close();
    } catch (error) {
      if (signal.aborted || this.failed.signal.aborted) throw error;
      if (!attempt.signal.aborted) await this.refuse(error, ended);
    }
    return undefined;
  }

  /**
   * Handles an ensemble that cannot be used. Rejects with the error if the program has started with it; otherwise waits
   * for another change, because a wrong change must not end a program.
   */
  private async refuse(error: unknown, ended: AbortSignal): Promise<void> {
    if (this.ensemble === this.options.loaded.config.zookeeper) throw error;
    this.reason = reasonOf(error);
    this.options.log.error('The changed ZooKeeper cannot be used; waiting for another change', undefined, {
      reason: this.reason,
    });
    if (!ended.aborted) await new Promise((resolve) => ended.addEventListener('abort', resolve, { once: true }));
    this.options.signal.throwIfAborted();
    this.failed.signal.throwIfAborted();
  }

  /** Starts what a longer wait needs. Rejects if the web endpoint cannot listen. */
  private async wait(): Promise<void> {
    await this.startEndpoint();
    await this.watcher.start();
  }

  private async startEndpoint(): Promise<void> {
    const { webEndpoint, loaded, name, clock, log, metrics } = this.options;
    const address = webEndpoint(loaded.config);
    if (address === undefined) return;
    // Loaded only with a web endpoint, because the libraries of the web server have hundreds of files.
    const { createWaitingEndpoint } = loadModule('./waiting-endpoint.js') as typeof WaitingEndpoint;
    this.endpoint = createWaitingEndpoint({
      ...{ name, clock, log, metrics },
      wait: () => ({ servers: this.ensemble.servers, since: this.since, reason: this.reason }),
    });
    const { port } = await this.endpoint.start(address);
    log.info('Web endpoint shows the wait for ZooKeeper', { address: address.address, port });
  }

  private apply({ zookeeper }: NodepoolConfig): void {
    if (isDeepStrictEqual(zookeeper, this.ensemble)) return;
    this.ensemble = zookeeper;
    this.reason = undefined;
    this.options.log.info('Connecting to ZooKeeper', { servers: zookeeper.servers });
    this.attempt.abort(new Error('the configuration has another ensemble'));
  }
}
