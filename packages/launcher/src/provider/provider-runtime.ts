/**
 * The life cycle of one provider with one configuration: registers its pools, starts it, serves requests, deletes nodes
 * and stops it. A provider whose configuration was changed or removed is retired: its accepted requests are completed
 * as they were accepted, and everything else is left to the runtime that replaces it.
 */

import { setMaxListeners } from 'node:events';
import type { Call, DriverError, Instance, Logger, LoginScan, Node, OpenCall, Provider } from '@nodepool/core';
import type { WorkInProgress } from '@nodepool/core';
import { SupervisedProvider, driverCall } from '@nodepool/core';
import { SharedBackingNodes } from '../supply/shared-backing-nodes.js';
import type { CandidatePools } from '../pool/candidate-pools.js';
import type { ReadyNodes } from '../pool/ready-nodes.js';
import { runLeakRounds } from '../maintenance/leak-rounds.js';
import { RecordComparison } from '../deletion/record-comparison.js';
import { Concurrency } from '../scheduling/concurrency.js';
import type { SlowLaunches } from '../capacity/slow-launches.js';
import { StrandedLaunches } from '../capacity/stranded-launches.js';
import type { WaitLimits } from '../capacity/wait-limits.js';
import type { LauncherContext } from '../context.js';
import { isOutOfService } from '@nodepool/store';
import { Deletions } from '../deletion/deletions.js';
import { MACHINES } from '../metrics/launcher-metrics.js';
import { RevocableGauges } from '../metrics/revocable-gauges.js';
import { ReportedGauge } from '@nodepool/daemon';
import type { PoolCapacity, ProviderActivity, ProviderSummary } from '@nodepool/status';
import { InstanceChecks } from './instance-checks.js';
import { NodeSupplier } from '../supply/node-supply.js';
import { PoolWorker } from './pool-worker.js';
import { ProviderHealth, type DatedCondition } from '../capacity/provider-health.js';
import { ProviderLimits } from '../quota/provider-limits.js';
import type { QuotaLedger } from '../quota/quota-ledger.js';
import type { Precedence } from '../precedence/precedence.js';
import type { RequestScheduler } from '../scheduling/request-scheduler.js';
import type { TurnLimiter } from '../quota/turn-limiter.js';

/** Time limit for the listing that shows if a cloud in trouble answers again, milliseconds. */
const CHECK_TIMEOUT_MS = 30_000;

/** Dependencies that the providers of a launcher share. */
export interface ProvidersShare {
  readonly ledger: QuotaLedger;
  readonly candidates: CandidatePools;
  readonly scheduler: RequestScheduler;
  readonly precedence: Precedence;
  readonly slowLaunches: SlowLaunches;
  readonly waitLimits: WaitLimits;
  /** Limits the rate of questions about labels of all providers together. */
  readonly labelLimiter: TurnLimiter;
  /** Limits the comparisons with all nodes of a provider in one turn of the event loop. */
  readonly passes: TurnLimiter;
}

export class ProviderRuntime {
  /** Aborts when the provider is retired or stopped. */
  private readonly retiring = new AbortController();
  /** Aborts when the work on accepted requests ends. */
  private readonly stopping = new AbortController();
  /** Aborts when nodes are not deleted any more. */
  private readonly deleting = new AbortController();
  private readonly log: Logger;
  private readonly context: LauncherContext;
  private readonly supervised: SupervisedProvider;
  private readonly gauges: RevocableGauges;
  private readonly health: ProviderHealth;
  private readonly strandedLaunches: StrandedLaunches;
  private readonly limits: ProviderLimits;
  private readonly supply: NodeSupplier;
  private readonly instances: InstanceChecks;
  private readonly machines: ReportedGauge<'provider' | 'pool' | 'state'>;
  private readonly pools: readonly PoolWorker[];
  private readonly unsubscribe: () => void;
  private readonly comparison: RecordComparison;
  private deletions: Deletions | undefined;
  private readonly backing: SharedBackingNodes[] = [];
  /** State and trouble of the provider in the last log message. */
  private reported: { readonly state: DatedCondition['state']; readonly trouble: DatedCondition['trouble'] } = {
    state: 'starting',
    trouble: undefined,
  };
  private readonly started: Promise<void>;
  private retirement: Promise<{ readonly ended: Promise<void> }> | undefined;

  constructor(
    shared: LauncherContext,
    readonly provider: Provider,
    private readonly share: ProvidersShare,
  ) {
    const { config } = provider;
    this.gauges = new RevocableGauges(shared.metrics);
    const context = { ...shared, metrics: this.gauges };
    this.context = context;
    const { signal } = this.stopping;
    const { signal: retiring } = this.retiring;
    this.log = context.log.with({ provider: config.name });
    this.supervised = new SupervisedProvider(provider, { ...context, log: this.log });
    // Each operation adds a listener; the default limit would warn of a leak.
    setMaxListeners(0, signal, retiring, this.deleting.signal);
    const check = context.capacity.breakers ? (): Promise<void> => this.checkCloud() : undefined;
    const oldestCall = (): OpenCall | undefined => this.supervised.oldestCall;
    const parts = { ...context, log: this.log, check, oldestCall };
    this.health = new ProviderHealth(parts, config.name, () => this.healthChanged());
    this.strandedLaunches = new StrandedLaunches(context.clock, this.health);
    const listInstances = this.listInstances.bind(this);
    this.limits = new ProviderLimits(context, provider, share.ledger, listInstances, retiring);
    const concurrency = new Concurrency(config.maxConcurrency, context.clock);
    this.machines = new ReportedGauge(context.metrics, MACHINES);
    const onChange = (): void => this.supplyChanged();
    const isDeleting = (id: string): boolean => this.deletions?.isDeleting(id) === true;
    this.supply = new NodeSupplier({ context, log: this.log, config, retiring, signal, isDeleting, onChange });
    const onUsable = (): void => this.pools.forEach((pool) => pool.readyNodesChanged());
    const { passes } = share;
    this.instances = new InstanceChecks({ context, log: this.log, provider, passes, retiring, signal, onUsable });
    const { health, strandedLaunches, limits, supply } = this;
    const readyNodes = this.readyNodes();
    const resourcing = { ...share, health, strandedLaunches, limits, concurrency, supply, readyNodes };
    // Created before any cloud is contacted: until the cloud answers, the pools are candidates that have not decided
    // yet.
    this.pools = [...config.pools.values()].map(
      (pool) => new PoolWorker(context, provider, pool, resourcing, { retiring, signal }),
    );
    this.unsubscribe = context.store.nodes.onChange(({ before, after }) => {
      const node = (after ?? before)?.node;
      if (node?.provider !== config.name) return;
      if (after !== undefined) this.countInterruption(before?.node, after.node);
      const isFree = after?.node.state === 'ready' && after.node.allocated_to === null && !after.locked;
      if (after !== undefined && !isFree) return;
      if (after !== undefined) this.instances.freed(after);
      // A launch that the cloud refused has a record without an instance; its removal frees no capacity.
      const isInstanceRemoved = after === undefined && node.external_id !== null;
      for (const pool of this.pools) pool.capacityFreed(isInstanceRemoved);
    });
    this.comparison = new RecordComparison(context, config.name, this.deleting.signal);
    // Begins before the launcher accepts requests, since it must know which nodes are older.
    context.tasks.run(`read the next node id for provider ${config.name}`, () => this.comparison.begin());
    let ended: () => void = () => undefined;
    this.started = new Promise((resolve) => (ended = resolve));
    context.tasks.run(`start provider ${config.name}`, () => this.start().finally(ended));
  }

  /** True once the provider serves requests, or is known to fail. */
  get ready(): boolean {
    return !this.health.isStarting;
  }

  /**
   * Retires the provider, which is stopped once its pools have completed their accepted requests. Resolves once
   * nothing is accepted any more, and the limits of all accepted requests are confirmed; `ended` resolves at the end.
   * `isReplaced` is true if another runtime deletes nodes from now on.
   */
  retire(isReplaced: boolean): Promise<{ readonly ended: Promise<void> }> {
    this.retirement ??= this.retireNow(isReplaced);
    return this.retirement;
  }

  /** Releases all requests in progress so that they can be resumed, and stops the provider. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error(`provider ${this.provider.config.name} is stopped`));
    const retired = this.retire(true);
    for (const pool of this.pools) pool.release();
    await (
      await retired
    ).ended;
  }

  private async retireNow(isReplaced: boolean): Promise<{ readonly ended: Promise<void> }> {
    // Further attempts of launches may wait for the deletion of failed instances.
    if (isReplaced) this.stopDeletions();
    this.unsubscribe();
    this.retiring.abort(new Error(`provider ${this.provider.config.name} is retired`));
    this.gauges.revoke();
    await Promise.all([this.supply.retire(), ...this.pools.map((pool) => pool.retire())]);
    return { ended: this.finish() };
  }

  /** Stops the provider once its requests have ended. */
  private async finish(): Promise<void> {
    await Promise.all(this.pools.map((pool) => pool.idle()));
    this.stopDeletions();
    this.health.stop();
    this.strandedLaunches.stop();
    this.stopping.abort(new Error(`provider ${this.provider.config.name} is stopped`));
    await this.supervised.wait('the start', () => this.started);
    await this.supply.stop();
    await this.supervised.stop();
    for (const backing of this.backing) backing.close();
  }

  private openBacking(owner: string): SharedBackingNodes {
    const backing = new SharedBackingNodes(this.context, this.provider.config.name, owner);
    this.backing.push(backing);
    return backing;
  }

  private stopDeletions(): void {
    this.deletions?.stop();
    this.deleting.abort(new Error(`provider ${this.provider.config.name} is stopped`));
  }

  /** Returns the state of the provider, and what its nodes use. */
  summary(): ProviderSummary {
    const { name } = this.provider.config;
    const { state, reason } = this.health.state;
    return { provider: name, state, reason, ...this.share.ledger.amountsOfProvider(name) };
  }

  /** Returns what limits leave in each pool. */
  capacity(): readonly PoolCapacity[] {
    return this.pools.map((pool) => pool.capacity());
  }

  /** Returns what the provider is doing, for the stack dump and for explanations. */
  activity(): ProviderActivity {
    const { name } = this.provider.config;
    return {
      provider: name,
      ...this.health.state,
      offers: this.health.offers(),
      ...this.share.ledger.amountsOfProvider(name),
      missingInstances: this.instances.missingInstances,
      pools: this.pools.map((pool) => pool.activity()),
      deletions: this.deletions?.ids() ?? [],
      work: this.work(),
    };
  }

  /** Returns the driver's work in progress, or an empty list if the driver does not report it correctly. */
  private work(): readonly WorkInProgress[] {
    try {
      const work: unknown = this.provider.inspect?.() ?? [];
      if (Array.isArray(work)) return work as readonly WorkInProgress[];
      throw new TypeError(`a list was expected, not ${typeof work}`);
    } catch (error) {
      this.log.debug('The driver did not report its work in progress', { error });
      return [];
    }
  }

  tenantLimitsChanged(): void {
    for (const pool of this.pools) pool.tenantLimitsChanged();
  }

  private async start(): Promise<void> {
    const { signal } = this.retiring;
    const { provider, context, health, log, supply } = this;
    const onFailure = health.startFailed.bind(health);
    const parts = {
      checkInstances: () => this.instances.checkNow(),
      observeListing: () => this.instances.observe(),
      nodeSupply: supply,
      loginScan: loginScanOf(context),
      backingNodes: (owner: string) => this.openBacking(owner),
      onApiCall: health.called.bind(health),
      onOpenCall: health.calling.bind(health),
      onRetry: (error: DriverError) => health.callFailed(error),
    };
    if (!(await this.supervised.start({ ...parts, onFailure }, signal))) return;
    this.deletions = new Deletions(
      context,
      provider,
      this.comparison,
      this.share.precedence,
      (nodeId) => this.share.ledger.release(nodeId),
      () => this.isLeft(),
      this.deleting.signal,
    );
    const { name } = provider.config;
    const { comparison } = this;
    const listInstances = this.listInstances.bind(this);
    context.tasks.run(`look for leaked resources of provider ${name}`, () =>
      runLeakRounds({ context, provider, listener: health, comparison, listInstances, signal }),
    );
    context.tasks.run(`check the instances of ready nodes of provider ${name}`, () => this.instances.run());
    try {
      await this.limits.load();
      await Promise.all(this.pools.map((pool) => pool.start()));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) return;
    health.started();
    log.info('Provider serves its pools');
  }

  private async listInstances(call: Call): Promise<readonly Instance[]> {
    return (await this.instances.list(call)).instances;
  }

  /** Combines the checks of machines and of instances; each applies only to nodes of its own kind of provider. */
  private readyNodes(): ReadyNodes {
    const { supply, instances } = this;
    return {
      isUsable: (node, label) => supply.isUsable(node, label) && instances.isUsable(node),
      isLost: (node) => instances.isLost(node),
      verify: async (node) => {
        const check = await supply.verify(node);
        if (check.kind === 'unusable') return check;
        const reason = await instances.verify(node);
        return reason === undefined ? check : { kind: 'unusable', reason };
      },
    };
  }

  /**
   * Lists the instances, which shows if the cloud answers and accepts the credentials. A driver may have the list
   * without a call; then the resources are listed, and none of them is deleted.
   */
  private async checkCloud(): Promise<void> {
    const { context, provider, log, health } = this;
    const call = { signal: this.stopping.signal, deadline: context.clock.monotonic() + CHECK_TIMEOUT_MS, log };
    const before = health.answers;
    await driverCall(context.clock, 'the check of the cloud', call, async (bounded) => {
      await this.instances.list(bounded);
      if (health.answers > before) return;
      await provider.cleanupLeakedResources({ leaked: () => Promise.resolve([]) }, bounded);
    });
  }

  private supplyChanged(): void {
    const { name, pools } = this.provider.config;
    for (const pool of pools.keys()) {
      const out = this.supply.outages(pool).length;
      this.machines.set({ provider: name, pool, state: 'in_service' }, this.supply.machineCount(pool) - out);
      this.machines.set({ provider: name, pool, state: 'out_of_service' }, out);
    }
    this.machines.end();
    for (const pool of this.pools) pool.supplyChanged();
  }

  private healthChanged(): void {
    this.reportState();
    for (const pool of this.pools) pool.healthChanged();
    this.deletions?.healthChanged();
  }

  /** Returns true while this launcher cannot use the provider, and another one that serves it can. */
  private isLeft(): boolean {
    const { state } = this.reported;
    if (state === 'starting' || state === 'serving' || state === 'degraded') return false;
    const { order } = this.share.precedence;
    for (const pool of this.context.store.components.pools()) {
      const isServed = pool.provider_name === this.provider.config.name && !isOutOfService(pool);
      if (isServed && order.isOfOthers(pool.id)) return true;
    }
    return false;
  }

  /**
   * Counts an interruption that any launcher has written in the health of the offer. An operator stops instances, too,
   * so a stopped one says nothing about the offer.
   */
  private countInterruption(before: Node | undefined, after: Node): void {
    const { interruption } = after;
    if (interruption === null || interruption.kind === 'stopped' || interruption.kind === 'replaced') return;
    const known = before?.interruption ?? null;
    if (known !== null && known.kind !== 'stopped') return;
    for (const pool of this.pools) pool.nodeInterrupted(after, interruption);
  }

  /** Logs each trouble once, when it begins, when its cause changes, and when it ends. */
  private reportState(): void {
    const { state, reason, trouble } = this.health.state;
    const before = this.reported;
    if (state === before.state && trouble?.cause === before.trouble?.cause) return;
    this.reported = { state, trouble };
    if (trouble !== undefined) {
      this.log.warn(`The provider is ${state}`, { reason, cause: trouble.cause, labels: trouble.labels });
    } else if (before.trouble !== undefined && state === 'serving') {
      const seconds = Math.round((this.context.clock.now() - before.trouble.since) / 1000);
      this.log.warn('The provider serves its pools again', { after_seconds: seconds });
      // A cloud that throttles may have demanded a longer wait.
      if (before.trouble.cause !== 'throttled') this.deletions?.recovered();
    }
  }
}

/** Returns the login scan of drivers, which shares the permits of all scans. */
function loginScanOf({ scanner, clock }: LauncherContext): LoginScan {
  return (login, { signal, deadline, log }) =>
    scanner.scan({ ...login, signal, timeoutMs: Math.max(0, deadline - clock.monotonic()), log });
}
