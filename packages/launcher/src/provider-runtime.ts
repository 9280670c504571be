/** The life of one configured provider in this launcher: it is started, serves its pools, deletes its nodes, is stopped. */

import { setMaxListeners } from 'node:events';
import { sleep, toDriverError, type ApiCall, type Logger, type Provider } from '@nodepool/core';
import { runLeakRounds } from './cleanup/leak-rounds.js';
import { Concurrency } from './concurrency.js';
import type { LauncherContext } from './context.js';
import { Deletions } from './deletions.js';
import type { ProviderActivity } from './observe/activity.js';
import { API_ANSWERS, API_CALLS } from './observe/launcher-metrics.js';
import { PoolWorker } from './pool-worker.js';

/** First and longest wait between attempts to start, milliseconds. */
const BACK_OFF_MS = { first: 1000, longest: 60_000 } as const;

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
    await this.started;
    await Promise.all(this.pools.map((pool) => pool.stop()));
    this.provider.stop();
    await this.provider.join();
  }

  /** What it is doing, for the stack dump and for explanations. */
  activity(): ProviderActivity {
    return {
      provider: this.provider.config.name,
      serving: this.serving,
      pools: this.pools.map((pool) => pool.activity()),
      deletions: this.deletions?.ids() ?? [],
      work: this.provider.inspect?.() ?? [],
    };
  }

  private onApiCall({ service, method, operation, durationMs, status }: ApiCall): void {
    const { metrics } = this.context;
    const { name: provider } = this.provider.config;
    metrics.observe(API_CALLS, { provider, service, method, operation }, durationMs);
    metrics.count(API_ANSWERS, { provider, service, status: String(status ?? 'none') });
  }

  private async start(): Promise<void> {
    const { signal } = this.stopping;
    if (!(await this.startProvider())) return;
    const { provider, context } = this;
    this.deletions = new Deletions(context, provider, signal);
    const { name } = provider.config;
    context.tasks.run(`look for leaked resources of provider ${name}`, () => runLeakRounds(context, provider, signal));
    const concurrency = new Concurrency(provider.config.maxConcurrency);
    this.pools = [...provider.config.pools.values()].map(
      (pool) => new PoolWorker(context, provider, pool, concurrency, signal),
    );
    try {
      await Promise.all(this.pools.map((pool) => pool.start()));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) return;
    this.serving = true;
    this.onServing();
  }

  /** False when it was stopped meanwhile. */
  private async startProvider(): Promise<boolean> {
    const { clock, random, tasks } = this.context;
    const { signal } = this.stopping;
    const stopped = (): boolean => signal.aborted;
    for (let failures = 0; !stopped(); failures += 1) {
      try {
        await this.provider.start({ clock, random, log: this.log, tasks, onApiCall: (call) => this.onApiCall(call) });
        return !stopped();
      } catch (error) {
        if (stopped()) return false;
        const waitMs = Math.min(BACK_OFF_MS.first * 2 ** failures, BACK_OFF_MS.longest);
        this.log.error('The provider could not be started; it is tried again', toDriverError(error), {
          seconds: waitMs / 1000,
        });
        // Cut short only by the signal, which ends the loop.
        await sleep(clock, waitMs, signal).catch(() => undefined);
      }
    }
    return false;
  }
}
