/** The life of one configured provider in this launcher: it is started, serves its pools, deletes its nodes, is stopped. */

import { setMaxListeners } from 'node:events';
import { startProvider, toDriverError, type Logger, type Provider } from '@nodepool/core';
import { runLeakRounds } from './cleanup/leak-rounds.js';
import { Concurrency } from './concurrency.js';
import type { LauncherContext } from './context.js';
import { Deletions } from './deletions.js';
import { driverCall } from './driver-call.js';
import type { ProviderActivity } from './observe/activity.js';
import { PoolWorker } from './pool-worker.js';
import { ProviderLimits } from './provider-limits.js';
import type { QuotaLedger } from './quota-ledger.js';

/** A provider that is stopped may take so long to end, milliseconds; drivers on our frameworks take a third of that at most. */
const STOP_TIMEOUT_MS = 30_000;

export class ProviderRuntime {
  private readonly stopping = new AbortController();
  private readonly log: Logger;
  private pools: PoolWorker[] = [];
  private deletions: Deletions | undefined;
  private serving = false;
  private readonly started: Promise<void>;

  constructor(
    private readonly context: LauncherContext,
    readonly provider: Provider,
    private readonly ledger: QuotaLedger,
    /** Called once it serves its pools. */
    private readonly onServing: () => void,
  ) {
    this.log = context.log.with({ provider: provider.config.name });
    // One listener per piece of work is no leak.
    setMaxListeners(0, this.stopping.signal);
    let ended: () => void = () => undefined;
    this.started = new Promise((resolve) => (ended = resolve));
    context.tasks.run(`start provider ${provider.config.name}`, () => this.start().finally(ended));
  }

  /** True once the provider's pools take requests. */
  get ready(): boolean {
    return this.serving;
  }

  /** Lets go of everything that is in progress, so that it can be taken up again, and ends. */
  async stop(): Promise<void> {
    this.serving = false;
    this.deletions?.stop();
    this.stopping.abort(new Error(`provider ${this.provider.config.name} is stopped`));
    await this.orLeftBehind('the start', () => this.started);
    await Promise.all(this.pools.map((pool) => pool.stop()));
    await this.orLeftBehind('the end', async () => {
      this.provider.stop();
      await this.provider.join();
    });
  }

  /** A driver that does not come to an end must not keep everybody else from going on. */
  private async orLeftBehind(what: string, work: () => Promise<void>): Promise<void> {
    const { clock } = this.context;
    const { name, driver } = this.provider.config;
    const call = { signal: new AbortController().signal, deadline: clock.monotonic() + STOP_TIMEOUT_MS, log: this.log };
    try {
      await driverCall(clock, `${what} of provider ${name}`, call, work);
    } catch (error) {
      this.log.error('The driver does not let the provider end; it is left behind', toDriverError(error), { driver });
    }
  }

  /** What it is doing, for the stack dump and for explanations. */
  activity(): ProviderActivity {
    return {
      provider: this.provider.config.name,
      serving: this.serving,
      ...this.ledger.amountsOfProvider(this.provider.config.name),
      pools: this.pools.map((pool) => pool.activity()),
      deletions: this.deletions?.ids() ?? [],
      work: this.provider.inspect?.() ?? [],
    };
  }

  /** To be called when limits of tenants have changed. */
  tenantLimitsChanged(): void {
    for (const pool of this.pools) pool.tenantLimitsChanged();
  }

  private async start(): Promise<void> {
    const { signal } = this.stopping;
    const { provider, context, ledger } = this;
    if (!(await startProvider(provider, { ...context, log: this.log }, signal))) return;
    this.deletions = new Deletions(context, provider, signal);
    const { name } = provider.config;
    context.tasks.run(`look for leaked resources of provider ${name}`, () => runLeakRounds(context, provider, signal));
    const limits = new ProviderLimits(context, provider, ledger, signal);
    const concurrency = new Concurrency(provider.config.maxConcurrency);
    this.pools = [...provider.config.pools.values()].map(
      (pool) => new PoolWorker(context, provider, pool, { ledger, limits, concurrency }, signal),
    );
    try {
      await limits.load();
      await Promise.all(this.pools.map((pool) => pool.start()));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) return;
    this.serving = true;
    this.onServing();
  }
}
