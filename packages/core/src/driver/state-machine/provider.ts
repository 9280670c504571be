/** A provider that runs the state machines of a driver's adapter. */

import { isDeepStrictEqual } from 'node:util';
import { sleep } from '../../runtime/clock.js';
import { TimerQueue } from '../../runtime/timer-queue.js';
import type { ExternalId, Node } from '../../model/node.js';
import type { Call } from '../call.js';
import type {
  Instance,
  InstanceTags,
  LeakFilter,
  NodeCleanup,
  NodeRequestHandler,
  Provider,
  ProviderContext,
  Readiness,
  RequestInfo,
  Resource,
  WorkInProgress,
} from '../api.js';
import { AbortedError, ConfigurationError, DriverError, toDriverError } from '../errors.js';
import type { ImageManager } from '../images.js';
import type { LabelConfig, PoolConfig, ProviderConfig } from '../provider-config.js';
import type { Adapter, ResourceCall } from '../state-machine-api.js';
import { driverCall } from '../supervised-provider.js';
import { InstanceCheck } from './instance-check.js';
import { identityOf } from './instance-identity.js';
import { checkInstances, externalIdKey } from './listing.js';
import { ListingFeed } from './listing-feed.js';
import { MachineRunner } from './machine-runner.js';
import { ManagedImages } from './managed-images.js';
import { NodeCleanups } from './node-cleanups.js';
import { StateMachineRequestHandler } from './request-handler.js';

const DEFAULT_LIST_INTERVAL_MS = 1000;

/** Maximum number of leaked resources deleted at the same time. */
const LEAK_DELETIONS = 10;

/** Time limit for stopping an adapter, in milliseconds; a slower adapter is abandoned. */
const STOP_TIMEOUT_MS = 10_000;

/** Objects that exist only while the provider is started. */
interface ProviderSession {
  readonly context: ProviderContext;
  readonly feed: ListingFeed;
  readonly runner: MachineRunner;
  readonly cleanups: NodeCleanups;
  /** Aborts when the provider is stopped. */
  readonly stopping: AbortController;
}

export class StateMachineProvider<L extends LabelConfig, P extends ProviderConfig<L>> implements Provider {
  readonly images?: ImageManager;
  readonly getQuotaLimits?: NonNullable<Provider['getQuotaLimits']>;
  readonly getQuotaForLabel?: NonNullable<Provider['getQuotaForLabel']>;
  readonly getAvailabilityZones?: NonNullable<Provider['getAvailabilityZones']>;
  readonly getConsoleLog?: NonNullable<Provider['getConsoleLog']>;
  readonly describeSite?: NonNullable<Provider['describeSite']>;
  private session: ProviderSession | undefined;
  private startCalled = false;
  /** True if the last listing has failed. */
  private isListingFailing = false;
  private stopped = false;
  private ended: Promise<void> | undefined;

  constructor(
    readonly config: P,
    private readonly adapter: Adapter<L>,
  ) {
    if (adapter.images !== undefined) {
      this.images = new ManagedImages({
        images: adapter.images,
        clock: () => this.started().context.clock,
        call: (what, call, work) => this.call(what, call, work, call.deadline),
      });
    }
    // The provider has an optional method only if the adapter implements it.
    const limits = adapter.getQuotaLimits?.bind(adapter);
    if (limits !== undefined) this.getQuotaLimits = (call) => this.call('reading the quota', call, limits);
    const need = adapter.getQuotaForLabel?.bind(adapter);
    if (need !== undefined) {
      this.getQuotaForLabel = (pool, label, call, machineType) =>
        this.call(`reading what label ${label} needs`, call, (guarded) =>
          need(this.label(pool, label), guarded, machineType),
        );
    }
    const zones = adapter.getAvailabilityZones?.bind(adapter);
    if (zones !== undefined) {
      this.getAvailabilityZones = (pool, call) =>
        this.call('listing the availability zones', call, (guarded) => zones(this.pool(pool), guarded));
    }
    const consoleLog = adapter.getConsoleLog?.bind(adapter);
    if (consoleLog !== undefined) {
      this.getConsoleLog = (externalId, { pool, label }, call) =>
        this.call('reading the console', call, (guarded) => consoleLog(externalId, this.label(pool, label), guarded));
    }
    const describe = adapter.describeSite?.bind(adapter);
    if (describe !== undefined) {
      this.describeSite = (call) => this.call('describing the site', call, (guarded) => describe(guarded));
    }
  }

  async start(context: ProviderContext): Promise<void> {
    if (this.stopped) throw new DriverError('aborted', `provider ${this.config.name} was stopped`);
    try {
      this.startCalled = true;
      await this.adapter.start?.(context);
    } catch (error) {
      throw toDriverError(error);
    }
    this.session ??= this.setUp(context);
    this.haltIfStopped();
  }

  stop(): void {
    this.stopped = true;
    this.haltIfStopped();
  }

  async join(): Promise<void> {
    this.ended ??= this.end();
    await this.ended;
  }

  labelReady(pool: string, label: string): Readiness {
    try {
      return this.adapter.labelReady?.(this.label(pool, label)) ?? { ready: true };
    } catch (error) {
      return { ready: false, reason: toDriverError(error).message };
    }
  }

  shortage(pool: string, labels: readonly string[]): string | undefined {
    return this.adapter.shortage?.(this.pool(pool), labels);
  }

  getRequestHandler(pool: string, request: RequestInfo): NodeRequestHandler {
    const { runner, cleanups } = this.started();
    const { adapter, config } = this;
    return new StateMachineRequestHandler({
      provider: config.name,
      pool: this.pool(pool),
      request,
      adapter,
      runner,
      onEnd: (nodeId, madeNothing) => cleanups.launchEnded(nodeId, madeNothing),
    });
  }

  async checkInstance(externalId: ExternalId, tags: InstanceTags, call: Call): Promise<void> {
    if (this.adapter.uniqueIds === true) return;
    await this.started().runner.run({
      name: `check of the instance of node ${tags.nodepool_node_id}`,
      kind: 'delete',
      nodeId: tags.nodepool_node_id,
      makeMachine: () => new InstanceCheck(externalId, identityOf(tags)),
      call,
    });
  }

  async cleanupNode(cleanup: NodeCleanup): Promise<void> {
    this.started().cleanups.start(cleanup);
  }

  async waitForNodeCleanup(nodeId: string): Promise<void> {
    await this.started().cleanups.wait(nodeId);
  }

  nodeDeletedNotification(node: Pick<Node, 'id'>): void {
    this.session?.cleanups.forget(node.id);
  }

  async cleanupLeakedResources(round: LeakFilter, call: Call): Promise<void> {
    await this.cleanUpTagged(round, call);
    const untagged = this.adapter.cleanUpUntagged?.bind(this.adapter);
    if (untagged !== undefined) await this.call('cleaning up untagged resources', call, untagged);
  }

  async listNodes(call: Call): Promise<readonly Instance[]> {
    return this.call('listing the instances', call, async (guarded) => checkInstances(await this.list(guarded)));
  }

  /** Returns the machines in progress, for the stack dump. */
  inspect(): WorkInProgress[] {
    return this.session?.runner.inspect() ?? [];
  }

  /** Lists the instances. If that succeeds after it has failed, what waits to repeat a call does so at once. */
  private async list(call: Call): Promise<readonly Instance[]> {
    try {
      const instances = await this.adapter.listInstances(call);
      if (this.isListingFailing) {
        this.isListingFailing = false;
        this.session?.feed.answered();
        this.session?.runner.cloudAnswered();
      }
      return instances;
    } catch (error) {
      this.isListingFailing = true;
      throw error;
    }
  }

  private async cleanUpTagged(round: LeakFilter, call: Call): Promise<void> {
    const ours = await this.call('listing the resources', call, async (guarded) => {
      const listed = await this.adapter.listResources(this.resourceCall(round, guarded));
      return listed.filter((resource) => resource.tags.nodepool_provider_name === this.config.name);
    });
    if (ours.length === 0) return;
    await this.deleteAll(await round.leaked(ours), call);
  }

  private resourceCall(round: Pick<LeakFilter, 'listInstances'>, call: Call): ResourceCall {
    const list = round.listInstances?.bind(round) ?? this.listNodes.bind(this);
    return { ...call, listInstances: () => list(call) };
  }

  /** Returns true if a fresh listing has the resource with the same tags, or if ids are unique. */
  private async isStillListed({ kind, externalId, tags }: Resource, call: Call): Promise<boolean> {
    if (this.adapter.uniqueIds === true) return true;
    const listed = await this.adapter.listResources(this.resourceCall({}, call));
    const others = listed.filter(
      (each) => each.kind === kind && externalIdKey(each.externalId) === externalIdKey(externalId),
    );
    return others.length > 0 && others.every((each) => isDeepStrictEqual({ ...each.tags }, { ...tags }));
  }

  private setUp(context: ProviderContext): ProviderSession {
    const { clock, random, tasks, onRetry, observeListing } = context;
    const { adapter, config } = this;
    const log = context.log.with({ provider: config.name });
    const timers = new TimerQueue(clock);
    const feed = new ListingFeed({
      clock,
      random,
      timers,
      log,
      intervalMs: adapter.listIntervalMs ?? DEFAULT_LIST_INTERVAL_MS,
      listInstances: (call) => this.list(call),
      onRetry,
      observeListing,
    });
    const runner = new MachineRunner({ clock, timers, feed });
    const cleanups = new NodeCleanups({
      provider: config.name,
      uniqueIds: adapter.uniqueIds === true,
      runner,
      random,
      tasks,
      onRetry,
      makeDeletion: (externalId, saved, cleanup) => adapter.getDeleteStateMachine(externalId, saved, cleanup.log),
    });
    return { context, feed, runner, cleanups, stopping: new AbortController() };
  }

  private haltIfStopped(): void {
    if (!this.stopped) return;
    this.session?.runner.stop();
    this.session?.stopping.abort(new AbortedError('the provider was stopped'));
  }

  /** Stops the adapter. `stop` has already ended everything else. */
  private async end(): Promise<void> {
    const { adapter, session } = this;
    if (!this.startCalled || adapter.stop === undefined) return;
    const settled = (async () => adapter.stop?.())();
    if (session === undefined) {
      await settled;
      return;
    }
    const { clock, log } = session.context;
    const controller = new AbortController();
    const fields = { provider: this.config.name };
    const late = sleep(clock, STOP_TIMEOUT_MS, controller.signal).then(
      () => log.warn('The driver did not stop in time; continuing without waiting', fields),
      () => undefined,
    );
    try {
      await Promise.race([settled, late]);
    } catch (error) {
      log.error('The driver failed to stop', error, fields);
    } finally {
      controller.abort();
    }
  }

  private async deleteAll(leaked: readonly Resource[], call: Call): Promise<void> {
    const failures: DriverError[] = [];
    const queue = leaked.values();
    const worker = async (): Promise<void> => {
      for (const resource of queue) {
        const failure = await this.deleteLeaked(resource, call);
        if (failure !== undefined) failures.push(failure);
      }
    };
    await Promise.all(Array.from({ length: Math.min(LEAK_DELETIONS, leaked.length) }, worker));
    const [first] = failures;
    if (first === undefined) return;
    const message = `${failures.length} of ${leaked.length} leaked resources of provider ${this.config.name} could not be deleted`;
    throw new DriverError(first.code, `${message}; the first: ${first.message}`, {
      cause: first,
      retryAfterMs: first.retryAfterMs,
    });
  }

  private async deleteLeaked(resource: Resource, call: Call): Promise<DriverError | undefined> {
    const { kind, name } = resource;
    try {
      const isDeleted = await this.call(`deleting leaked ${kind} ${name}`, call, async (guarded) => {
        if (!(await this.isStillListed(resource, guarded))) return false;
        await this.adapter.deleteResource(resource, guarded);
        return true;
      });
      if (!isDeleted) return undefined;
      call.log.info('A leaked resource was deleted', { kind, name, external_id: resource.externalId });
      return undefined;
    } catch (error) {
      const failure = toDriverError(error);
      if (failure.code === 'not-found') return undefined;
      call.log.warn('A leaked resource could not be deleted', { kind, name, error: failure });
      return failure;
    }
  }

  /**
   * Makes a call that ends when the provider is stopped, whatever the adapter does. The program that made it bounds its
   * time with `driverCall`, so there is a deadline only for calls of the provider itself.
   */
  private async call<T>(
    what: string,
    call: Call,
    work: (guarded: Call) => Promise<T>,
    deadline = Infinity,
  ): Promise<T> {
    const { context, stopping } = this.started();
    const guarded = async ({ signal }: Call): Promise<T> => {
      try {
        return await work({ ...call, signal });
      } catch (error) {
        throw toDriverError(error);
      }
    };
    const name = `${what} of provider ${this.config.name}`;
    return driverCall(context.clock, name, { ...call, deadline }, guarded, [stopping.signal]);
  }

  private started(): ProviderSession {
    if (this.session !== undefined) return this.session;
    throw new DriverError('unexpected', `provider ${this.config.name} was not started`, { outcome: 'not-applied' });
  }

  private pool(name: string): PoolConfig<L> {
    const pool = this.config.pools.get(name);
    if (pool !== undefined) return pool;
    throw new ConfigurationError(`provider ${this.config.name} has no pool ${name}`);
  }

  private label(pool: string, name: string): L {
    const label = this.pool(pool).labels.get(name);
    if (label !== undefined) return label;
    throw new ConfigurationError(`label ${name} is not in pool ${pool} of provider ${this.config.name}`);
  }
}
