/** A gateway: leases in ZooKeeper, and the API on them. Several gateways can serve one ensemble. */

import { readFile } from 'node:fs/promises';
import {
  reasonOf,
  TaskSupervisor,
  type Clock,
  type Logger,
  type Metrics,
  type RandomSource,
  type Timer,
} from '@nodepool/core';
import { openRequestor, type Requestor } from '@nodepool/requestor';
import { openStore, type Store } from '@nodepool/store';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { Authenticator } from './auth/authenticator.js';
import { IssuerTokens } from './auth/issuer-tokens.js';
import { EventStreams } from './http/event-streams.js';
import { GatewayServer, type Certificate } from './http/gateway-server.js';
import { leaseDocument } from './http/lease-document.js';
import { addLeaseRoutes } from './http/lease-routes.js';
import { EnsembleClock } from './leases/ensemble-clock.js';
import { LeaseController } from './leases/lease-controller.js';
import { LeaseIndex } from './leases/lease-index.js';
import { LeaseService } from './leases/lease-service.js';
import { LeaseTable } from './leases/lease-table.js';
import { REQUESTOR } from './leases/record.js';
import { LeaseMetrics } from './metrics.js';
import type { LiveSettings } from './settings/live-settings.js';
import type { Settings } from './settings/settings.js';

export interface GatewayOptions {
  /** Stays open after `stop`. */
  readonly zooKeeper: ZooKeeper;
  readonly settings: LiveSettings;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Name of this process, e.g. `<host>-<pid>`, which no other running gateway has. */
  readonly identifier: string;
}

/** Interval of the measurements of the ensemble's time, in milliseconds. */
const MEASURE_MS = 600_000;
const RETRY_MS = 1000;

export class Gateway {
  readonly store: Store;
  readonly tasks: TaskSupervisor;
  private readonly table: LeaseTable;
  private readonly time: EnsembleClock;
  private readonly index: LeaseIndex;
  private readonly requestor: Requestor;
  private readonly service: LeaseService;
  private readonly controller: LeaseController;
  private readonly streams: EventStreams;
  private readonly stopping = new AbortController();
  private server: GatewayServer | undefined;
  private measuring: Timer | undefined;

  constructor(private readonly options: GatewayOptions) {
    const { zooKeeper, clock, random, log, metrics, settings, identifier } = options;
    this.tasks = new TaskSupervisor(clock, (task, error, about) =>
      log.error('Background work failed', error, { ...about, task }),
    );
    this.store = openStore(zooKeeper, { clock, random, identifier, log });
    this.requestor = openRequestor(zooKeeper, { name: REQUESTOR, clock, random, log });
    this.time = new EnsembleClock(zooKeeper, clock);
    const { store, time, tasks, requestor } = this;
    this.table = new LeaseTable({ zooKeeper, clock, time, log, gateway: identifier });
    const { table } = this;
    this.service = new LeaseService({ zooKeeper, table, time, clock, random });
    this.streams = new EventStreams({ clock, metrics, limits: () => settings.current.limits });
    this.index = new LeaseIndex(store, (id) => {
      this.controller.enqueue(id);
      this.streams.changed(id);
    });
    const { index } = this;
    this.controller = new LeaseController({
      ...{ zooKeeper, store, table, index, requestor, time, clock, random, tasks, log },
      metrics: new LeaseMetrics(metrics),
      gateway: identifier,
      retention: () => settings.current.retention,
    });
    table.onChange(({ id }) => this.streams.changed(id));
    // Pools that come, go or pause change the reasons of waiting leases.
    store.components.onChange(() => this.streams.allChanged());
  }

  /** True if the gateway sees all records. */
  get ready(): boolean {
    return this.store.complete && this.table.complete;
  }

  /** Starts to listen, and resolves with the port. Requests are refused until the gateway is ready. */
  async start(): Promise<{ readonly port: number }> {
    const { settings, log, clock, metrics } = this.options;
    const { table, service, streams, store, index } = this;
    const issuers = new IssuerTokens({ issuers: () => settings.current.issuers, clock, log });
    const authenticator = new Authenticator(() => settings.current, issuers);
    this.server = new GatewayServer({
      ...{ clock, log, metrics },
      limits: () => settings.current.limits,
      certificate: await certificateOf(settings.current),
      authenticate: (authorization) => authenticator.authenticate(authorization),
      isReady: () => this.ready,
      routes: (app, principalOf) =>
        addLeaseRoutes(app, {
          ...{ table, service, streams, principalOf },
          sources: { store, index },
          audit: log.named('nodepool.gateway.audit'),
          defaultLifetime: () => settings.current.defaultLifetime,
          stopping: this.stopping.signal,
        }),
    });
    const { server } = this;
    settings.onChange((changed) => this.tasks.run('apply the settings', () => this.apply(server, changed)));
    const address = await server.start(settings.current.listen);
    this.tasks.run('start', () => this.load());
    return address;
  }

  /** Logs the work in progress. */
  dump(log: Logger): void {
    const { running, due, delayed, retries } = this.controller.activity();
    log.info('Leases', { known: this.table.size, running, due: due.length, delayed, retries });
  }

  /** Stops serving. Leases stay: this gateway continues with them after a restart, others do so at once. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error('the gateway stops'));
    this.measuring?.cancel();
    this.streams.close();
    await this.server?.stop();
    await this.controller.stop();
    this.table.close();
    this.store.close();
    await this.requestor.close();
    await this.tasks.idle();
  }

  private async load(): Promise<void> {
    const { signal } = this.stopping;
    this.store.start();
    await this.repeated(async () => {
      await this.time.measure({ signal });
      await this.table.start({ signal });
      await this.store.ready({ signal });
    });
    if (signal.aborted) return;
    this.options.log.info('Gateway is ready', { leases: this.table.size });
    this.measureLater();
  }

  /** Measures the time from time to time, because a gateway without writes does not learn it. */
  private measureLater(): void {
    const { signal } = this.stopping;
    if (signal.aborted) return;
    this.measuring = this.options.clock.schedule(
      MEASURE_MS,
      () => {
        this.tasks.run('measure the time of ZooKeeper', () => this.repeated(() => this.time.measure({ signal })));
        this.measureLater();
      },
      { background: true },
    );
  }

  /** Repeats `work` until it succeeds or the gateway stops. */
  private async repeated(work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.options;
    const { signal } = this.stopping;
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn('ZooKeeper cannot be used; retrying', { reason: reasonOf(error) });
        await new Promise<void>((resolve) => {
          const timer = clock.schedule(RETRY_MS, resolve);
          signal.addEventListener('abort', () => {
            timer.cancel();
            resolve();
          });
        });
      }
    }
  }

  private async apply(server: GatewayServer, settings: Settings): Promise<void> {
    server.update(await certificateOf(settings));
  }

  /** Returns the document of a lease, for tests and diagnosis. */
  documentOf(id: string): ReturnType<typeof leaseDocument> | undefined {
    const entry = this.table.get(id);
    return entry === undefined ? undefined : leaseDocument({ store: this.store, index: this.index }, entry);
  }
}

async function certificateOf({ tls }: Settings): Promise<Certificate | undefined> {
  if (tls === undefined) return undefined;
  const [cert, key] = await Promise.all([readFile(tls.cert), readFile(tls.key)]);
  return { cert, key };
}
