/** The leases of an ensemble and the work on them, without the API. */

import {
  reasonOf,
  sleep,
  type Clock,
  type Logger,
  type Metrics,
  type RandomSource,
  type TaskSupervisor,
  type Timer,
} from '@nodepool/core';
import { superviseTasks } from '@nodepool/daemon';
import { openRequestor, type Requestor } from '@nodepool/requestor';
import { openStore, type Store } from '@nodepool/store';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { LeaseMetrics } from '../metrics.js';
import { EnsembleClock } from './ensemble-clock.js';
import { LeaseController } from './lease-controller.js';
import { LeaseIndex } from './lease-index.js';
import { LeaseService } from './lease-service.js';
import { LeaseTable } from './lease-table.js';
import { REQUESTOR } from './record.js';

export interface LeasesOptions {
  /** Stays open after `stop`. */
  readonly zooKeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Name of this process, e.g. `<host>-<pid>`, which no other running gateway has. */
  readonly identifier: string;
  /** Seconds for which ended leases are kept. */
  readonly retention: () => number;
}

/** Interval of the measurements of the ensemble's time, in milliseconds. */
const MEASURE_MS = 600_000;
const RETRY_MS = 1000;

export class Leases {
  readonly store: Store;
  readonly tasks: TaskSupervisor;
  readonly table: LeaseTable;
  readonly index: LeaseIndex;
  readonly service: LeaseService;
  readonly controller: LeaseController;
  private readonly time: EnsembleClock;
  private readonly requestor: Requestor;
  private readonly stopping = new AbortController();
  private measuring: Timer | undefined;

  /** `onChange` is called with the id of a lease that may look different. */
  constructor(
    private readonly options: LeasesOptions,
    onChange: (leaseId: string) => void = () => undefined,
  ) {
    const { zooKeeper, clock, random, log, metrics, identifier, retention } = options;
    this.tasks = superviseTasks(clock, log);
    this.store = openStore(zooKeeper, { clock, random, identifier, log });
    this.requestor = openRequestor(zooKeeper, { name: REQUESTOR, clock, random, log });
    this.time = new EnsembleClock(zooKeeper, clock);
    const { store, time, tasks, requestor } = this;
    this.table = new LeaseTable({ zooKeeper, clock, time, log, gateway: identifier });
    const { table } = this;
    this.service = new LeaseService({ zooKeeper, table, time, clock, random });
    this.index = new LeaseIndex(store, (id) => {
      this.controller.enqueue(id);
      onChange(id);
    });
    this.controller = new LeaseController({
      ...{ zooKeeper, store, table, requestor, time, clock, random, tasks, log, retention },
      index: this.index,
      metrics: new LeaseMetrics(metrics),
      gateway: identifier,
    });
    table.onChange(({ id }) => onChange(id));
    // The monotonic clock stands still while the machine is suspended, which ends the session.
    table.onComplete((complete) => {
      if (complete) this.measureNow();
    });
  }

  /** True while all records are known. */
  get ready(): boolean {
    return this.store.complete && this.table.complete;
  }

  /** Resolves once all records are known, or at `stop`. */
  async start(): Promise<void> {
    const { signal } = this.stopping;
    this.store.start();
    await this.repeated(async () => {
      await this.time.measure({ signal });
      await this.table.start({ signal });
      await this.store.ready({ signal });
    });
    if (signal.aborted) return;
    this.options.log.info('All leases are known', { leases: this.table.size });
    this.measureLater();
  }

  /** Logs the work in progress. */
  dump(log: Logger): void {
    const { running, due, delayed, retries } = this.controller.activity();
    log.info('Leases', { known: this.table.size, running, due: due.length, delayed, retries });
  }

  /** Stops the work. Leases stay: this gateway continues with them after a restart, others do so at once. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error('the gateway stops'));
    this.measuring?.cancel();
    await this.controller.stop();
    this.table.close();
    this.store.close();
    await this.requestor.close();
    await this.tasks.idle();
  }

  /** Measures the time from time to time, because a gateway without writes does not learn it. */
  private measureLater(): void {
    if (this.stopping.signal.aborted) return;
    this.measuring = this.options.clock.schedule(
      MEASURE_MS,
      () => {
        this.measureNow();
        this.measureLater();
      },
      { background: true },
    );
  }

  private measureNow(): void {
    const { signal } = this.stopping;
    this.tasks.run('measure the time of ZooKeeper', () => this.repeated(() => this.time.measure({ signal })));
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
        // The next attempt fails at once after an abort.
        await sleep(clock, RETRY_MS, signal).catch(() => undefined);
      }
    }
  }
}
