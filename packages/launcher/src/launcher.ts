/**
 * Registers the launcher, runs one runtime per configured provider, and follows changes of the configuration.
 * `provider/request-path.ts` serves requests; `controllers.ts` lists the other work.
 */

import { isDeepStrictEqual } from 'node:util';
import {
  configurationPrints,
  sameProvider,
  type ConfigurationPrints,
  type NodepoolConfig,
  type ReadyTarget,
} from '@nodepool/config';
import type { Capacity, ProviderActivity, ProviderSummary, QueuePosition } from '@nodepool/status';
import { silentDecisions, silentTimelines, withRetired } from '@nodepool/status';
import {
  hasImageTests,
  pauses,
  reasonOf,
  shortened,
  silentMetrics,
  type Driver,
  type ProviderConfig,
} from '@nodepool/core';
import type { ComponentData, ComponentHandle, ConfigurationFacts, WebEndpoint } from '@nodepool/store';
import { CandidatePools } from './pool/candidate-pools.js';
import { SlowLaunches } from './capacity/slow-launches.js';
import { WaitLimits } from './capacity/wait-limits.js';
import { BACKFILL_WINDOW_MS, type LauncherContext, type LauncherOptions } from './context.js';
import type { Controller } from './controller.js';
import { createControllers } from './controllers.js';
import { driverVersions, DriversInUse } from './provider/drivers-in-use.js';
import { LimitMetrics } from './metrics/limits.js';
import { ServiceOrder } from './fairness/service-order.js';
import { capacityOf } from './quota/shared-capacity.js';
import { sharedUse } from './quota/shared-use.js';
import { QuotaLedger } from './quota/quota-ledger.js';
import { poolComponent } from './pool/pool-registration.js';
import { ProviderRuntime, type ProvidersShare } from './provider/provider-runtime.js';
import { Precedence } from './precedence/precedence.js';
import { RequestScheduler } from './scheduling/request-scheduler.js';
import { ReadyTargets } from './supply/ready-targets.js';
import { TurnLimiter } from './quota/turn-limiter.js';

/** Limit of the labels, over all pools, whose needs are requested in one turn of the event loop. */
const LABELS_PER_TURN = 50;
/** Time after which the start of providers continues in another turn of the event loop, milliseconds. */
const TURN_MS = 10;
/** Limit of a published reason, because the size of the component is limited. */
const MAX_REASON = 300;

export class Launcher implements ProvidersShare {
  private readonly runtimes = new Map<string, ProviderRuntime>();
  /** Runtimes of earlier configurations that complete the requests they have accepted. */
  private readonly retired = new Set<ProviderRuntime>();
  private component: ComponentHandle<ComponentData> | undefined;
  private controllers: readonly Controller[] = [];
  private readonly targets: ReadyTargets;
  /** Resolves when the latest configuration is applied; configurations are applied one after another. */
  private applying: Promise<void> = Promise.resolve();
  private config: NodepoolConfig | undefined;
  private prints: { readonly config: NodepoolConfig; readonly prints: ConfigurationPrints } | undefined;
  /** Configured providers that their drivers could not create, with the reasons. */
  private readonly unusable = new Map<string, string>();
  private readonly context: LauncherContext;
  private readonly limits: LimitMetrics;
  private readonly order = new ServiceOrder();
  private readonly drivers: DriversInUse;
  readonly ledger: QuotaLedger;
  readonly candidates: CandidatePools;
  readonly scheduler: RequestScheduler;
  readonly precedence: Precedence;
  readonly labelLimiter: TurnLimiter;
  readonly passes: TurnLimiter;
  readonly slowLaunches: SlowLaunches;
  readonly waitLimits: WaitLimits;
  private stopped = false;
  /** True if records of nodes that other launchers handle may be read late. */
  private mayReadLate = false;

  constructor(options: LauncherOptions) {
    this.context = {
      metrics: silentMetrics,
      decisions: silentDecisions,
      timelines: silentTimelines,
      backfillWindowMs: BACKFILL_WINDOW_MS,
      fqdn: options.hostname,
      capacity: { breakers: true, offers: true },
      ...options,
    };
    this.targets = new ReadyTargets(this.context);
    this.limits = new LimitMetrics(this.context.metrics);
    this.drivers = new DriversInUse(this.context.log, this.context.metrics);
    this.ledger = new QuotaLedger(this.context.store, this.order);
    // Before the candidates, whose listeners rely on the order of launchers after the same change of the registry.
    this.precedence = new Precedence(this.context.store, this.context.clock);
    this.context.store.nodes.delayReads({
      mayBeOld: () => this.mayReadLate,
      has: ({ launcher, trial }) => (trial ?? null) === null && this.precedence.order.isOfOthers(launcher),
    });
    this.context.store.requests.delayReads();
    this.candidates = new CandidatePools(this.context.store.components, this.context.clock, this.context.log);
    this.whenComplete(() => {
      const { requests } = this.context.store;
      const open = [...requests.inState('requested'), ...requests.inState('pending')];
      this.candidates.expect(open.flatMap(({ request }) => request.node_types));
    });
    this.labelLimiter = new TurnLimiter(this.context.clock, LABELS_PER_TURN);
    this.passes = new TurnLimiter(this.context.clock, 1);
    this.slowLaunches = new SlowLaunches(this.context.clock, this.context.capacity.breakers);
    this.waitLimits = new WaitLimits(this.context.store.requests, this.context.clock);
    this.scheduler = new RequestScheduler(this.context, this.candidates, this.waitLimits, this.order, this.precedence);
  }

  /** Calls the function once, when the store is complete for the first time. */
  private whenComplete(call: () => void): void {
    const { store } = this.context;
    if (store.complete) {
      call();
      return;
    }
    const unsubscribe = store.onComplete((complete) => {
      if (!complete) return;
      unsubscribe();
      if (!this.stopped) call();
    });
  }

  /** Returns the current work of the providers, for the stack dump and for explanations. */
  activity(): readonly ProviderActivity[] {
    const present = [...this.runtimes.values()].map((runtime) => runtime.activity());
    return [...this.retired].reduce((all, runtime) => withRetired(all, runtime.activity()), present);
  }

  /** Returns what limits leave for further nodes. */
  capacity(): Capacity {
    const { ledger, runtimes } = this;
    return {
      pools: [...runtimes.values()].flatMap((runtime) => runtime.capacity()),
      providers: [...runtimes.keys()].map((provider) => ({ provider, free: ledger.freeInProvider(provider) })),
      tenants: [...ledger.freeOfTenants()].map(([tenant, free]) => ({ tenant, free })),
    };
  }

  /** Returns the states of the providers, and what their nodes use. */
  summaries(): readonly ProviderSummary[] {
    return [...this.runtimes.values()].map((runtime) => runtime.summary());
  }

  /** Returns the place of a waiting request among the requests with the same needs; undefined if it does not wait. */
  queuePosition(requestId: string): QueuePosition | undefined {
    return this.scheduler.queuePosition(requestId);
  }

  /** Returns true if this launcher reports something that all launchers see, see `LauncherOrder.reports`. */
  reports(id: string, poolId: string | null): boolean {
    return this.precedence.order.reports(id, poolId);
  }

  /** Returns the number of ready nodes that a label should have; undefined if it is not configured. */
  readyTarget(label: string): ReadyTarget | undefined {
    return this.config?.labels.has(label) === true ? this.targets.of(label) : undefined;
  }

  /** True while ZooKeeper is connected and every configured provider serves requests or is known to fail. */
  get ready(): boolean {
    if (this.config === undefined || !this.context.store.complete) return false;
    const { providers, loadedDrivers } = this.config;
    for (const [name, { driver }] of providers)
      if (loadedDrivers.has(driver) && !this.unusable.has(name) && this.runtimes.get(name)?.ready !== true)
        return false;
    return true;
  }

  /** Registers the launcher and starts to serve, on a started store. `webapp` is the address of the web endpoint. */
  async start(config: NodepoolConfig, webapp?: WebEndpoint): Promise<void> {
    const { store, hostname, version } = this.context;
    await this.fingerprint(config);
    this.component = store.components.register<ComponentData>({
      hostname,
      kind: 'launcher',
      state: 'running',
      version,
      model_api: 0,
      ...this.published(config),
      ...(webapp === undefined ? {} : { webapp }),
    });
    this.controllers = createControllers(
      this.context,
      this,
      (provider) => this.runtimes.has(provider),
      (provider) => this.runtimes.has(provider) && this.config?.providers.get(provider)?.createsNodes !== false,
      this.targets,
      (forecasts) => this.context.tasks.run('publish the forecasts', async () => this.component?.update({ forecasts })),
    );
    await this.apply(config);
  }

  /** Applies another configuration: only providers that differ are stopped and started. */
  apply(config: NodepoolConfig): Promise<void> {
    const applied = this.applying.then(() => this.applyNow(config));
    // The caller receives a failure; the next configuration is applied nevertheless.
    this.applying = applied.catch(() => undefined);
    return applied;
  }

  /** Releases all work in progress so that it can be resumed, and leaves the registry. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.applying;
    const parts = [...this.controllers, ...this.runtimes.values(), ...this.retired];
    await Promise.all(parts.map(async (part) => part.stop()));
    this.scheduler.stop();
    this.precedence.stop();
    this.order.stop();
    this.waitLimits.stop();
    this.candidates.stop();
    await this.component?.close();
    await this.context.tasks.idle();
  }

  private async applyNow(config: NodepoolConfig): Promise<void> {
    await this.fingerprint(config);
    if (this.stopped) return;
    this.mayReadLate = mayReadLate(config);
    this.ledger.setTenantLimits(config.tenantLimits);
    this.waitLimits.apply(config);
    this.applyShares(config);
    this.scheduler.waitLimitsChanged();
    for (const runtime of this.runtimes.values()) runtime.tenantLimitsChanged();
    const { config: before } = this;
    this.config = config;
    const restarts = this.retireChanged(before, config);
    this.drivers.apply(config);
    this.publish(config);
    for (const [name, { driver, reason }] of config.brokenProviders) {
      this.context.log.error('The driver of the provider cannot be used', undefined, {
        provider: name,
        driver,
        reason,
      });
    }
    const ends = [...restarts].map(([name, retirement]) => this.restart(name, retirement, config));
    const results = await Promise.allSettled([this.startNew(config, restarts), ...ends]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    if (ends.length > 0) for (const controller of this.controllers) controller.apply?.(config);
  }

  private applyShares({ fairShares }: NodepoolConfig): void {
    const { store, clock } = this.context;
    const capacity = capacityOf(clock, this.ledger, () => this.config?.providers.values() ?? []);
    if (this.order.apply(fairShares, { store, clock, capacity, useOf: sharedUse })) this.scheduler.orderChanged();
  }

  /** Retires the providers that are removed or changed. Returns the promises of their retirement by name. */
  private retireChanged(
    before: NodepoolConfig | undefined,
    config: NodepoolConfig,
  ): ReadonlyMap<string, Promise<void>> {
    const retirements = new Map<string, Promise<void>>();
    for (const [name, runtime] of [...this.runtimes]) {
      if (before !== undefined && sameProvider(before, config, name)) continue;
      this.runtimes.delete(name);
      this.context.log.info('Retiring provider', { provider: name, removed: !config.providers.has(name) });
      retirements.set(name, this.retire(name, runtime, startable(config, name) !== undefined));
    }
    return retirements;
  }

  /** Resolves once another runtime can serve the provider. The accepted requests are completed in the background. */
  private async retire(name: string, runtime: ProviderRuntime, isReplaced: boolean): Promise<void> {
    this.retired.add(runtime);
    const { ended } = await runtime.retire(isReplaced);
    const { tasks, log } = this.context;
    tasks.run(`complete the requests of retired provider ${name}`, async () => {
      try {
        await ended;
      } finally {
        this.retired.delete(runtime);
        log.info('Retired provider', { provider: name });
      }
    });
  }

  /** Starts the providers that are not being restarted. */
  private async startNew(config: NodepoolConfig, restarts: ReadonlyMap<string, unknown>): Promise<void> {
    await this.candidates.grow(() => this.startProviders(config, restarts));
    this.publish(config);
    this.limits.apply(config);
    for (const controller of this.controllers) controller.apply?.(config);
  }

  /**
   * Starts a provider with its changed configuration once the former one accepts nothing more, unless it is removed.
   * Meanwhile its pools remain candidates, so that its requests do not fail.
   */
  private async restart(name: string, retirement: Promise<void>, config: NodepoolConfig): Promise<void> {
    const next = startable(config, name);
    const leave = next === undefined ? () => undefined : this.announce(next.config);
    try {
      await retirement;
      if (next !== undefined && !this.stopped) this.startProvider(next.driver, next.config);
    } finally {
      leave();
    }
  }

  /** Adds the pools of a provider as paused candidates. The returned function removes them. */
  private announce(provider: ProviderConfig): () => void {
    const { context, candidates } = this;
    const ends = Array.from(provider.pools.values(), (pool) => {
      const id = `${provider.name}-${pool.name}-${context.random.uuidHex()}`;
      return candidates.add({ ...poolComponent(context, id, provider, pool), paused: true });
    });
    return () => ends.forEach((end) => end());
  }

  /** Starts the providers that are not started. Pauses between them, because a large site has hundreds of pools. */
  private async startProviders(config: NodepoolConfig, restarts: ReadonlyMap<string, unknown>): Promise<void> {
    const pause = pauses(this.context.clock, TURN_MS);
    this.unusable.clear();
    for (const [name, providerConfig] of config.providers) {
      const driver = config.loadedDrivers.get(providerConfig.driver);
      if (driver === undefined || this.runtimes.has(name) || restarts.has(name)) continue;
      await pause();
      if (this.stopped) return;
      this.startProvider(driver, providerConfig);
    }
  }

  /** Starts a provider. A driver that cannot create it affects no other provider. */
  private startProvider(driver: Driver, config: ProviderConfig): void {
    const { log } = this.context;
    const { name } = config;
    const fields = { provider: name, driver: config.driver };
    log.info('Starting provider', fields);
    try {
      this.runtimes.set(name, new ProviderRuntime(this.context, driver.getProvider(config), this));
    } catch (error) {
      this.unusable.set(name, reasonOf(error));
      log.error(
        'The driver could not create the provider; the next change of the configuration retries',
        error,
        fields,
      );
    }
  }

  /** Publishes the drivers, the fingerprints of the configuration, and the providers that cannot be served. */
  private publish(config: NodepoolConfig): void {
    const { component } = this;
    if (component === undefined) return;
    const { drivers = {}, configuration, unserved = {} } = component.component;
    const published = this.published(config);
    const known = { drivers, ...(configuration === undefined ? {} : { configuration }), unserved };
    if (isDeepStrictEqual(published, known)) return;
    // The update waits for ZooKeeper; the start of providers does not wait for the update.
    this.context.tasks.run('publish the configuration', () => component.update(published));
  }

  /** Computes the fingerprints of a configuration that is to be published. */
  private async fingerprint(config: NodepoolConfig): Promise<void> {
    if (this.prints?.config === config) return;
    const prints = await configurationPrints(config, pauses(this.context.clock, TURN_MS));
    this.prints = { config, prints };
  }

  /** Returns the fingerprints; the time changes only with them. */
  private configurationFacts(): ConfigurationFacts | undefined {
    const before = this.component?.component.configuration;
    if (this.prints === undefined || before?.fingerprint === this.prints.prints.fingerprint) return before;
    return { ...this.prints.prints, since: Math.round(this.context.clock.now() / 1000) };
  }

  private published(config: NodepoolConfig): Pick<ComponentData, 'drivers' | 'configuration' | 'unserved'> {
    const broken = [...config.brokenProviders].map(([name, { reason }]) => [name, reason] as const);
    const unserved = [...broken, ...this.unusable].map(([name, reason]) => [name, shortened(reason, MAX_REASON)]);
    const configuration = this.configurationFacts();
    return {
      drivers: driverVersions(config),
      ...(configuration === undefined ? {} : { configuration }),
      unserved: Object.fromEntries(unserved) as Record<string, string>,
    };
  }
}

/**
 * Returns true if no part of the configuration needs every change of every node at once. Limits of tenants do, because
 * a node that is handed over counts for another tenant, and reviews of images, because records have their results.
 */
function mayReadLate({ tenantLimits, providers }: NodepoolConfig): boolean {
  if (tenantLimits.size > 0) return false;
  for (const { diskImages } of providers.values())
    for (const { tests } of diskImages.values()) if (tests !== undefined && hasImageTests(tests)) return false;
  return true;
}

/** Returns the provider and its driver if both are configured and the driver is loaded. */
function startable(
  { providers, loadedDrivers }: NodepoolConfig,
  name: string,
): { readonly driver: Driver; readonly config: ProviderConfig } | undefined {
  const config = providers.get(name);
  const driver = config === undefined ? undefined : loadedDrivers.get(config.driver);
  return config === undefined || driver === undefined ? undefined : { driver, config };
}
