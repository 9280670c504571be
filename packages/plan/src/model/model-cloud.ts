/**
 * A model of the clouds: launches and deletions take the drawn times, and fail as drawn. It stands for the driver of
 * every provider that creates instances.
 */

import {
  driverError,
  ERROR_POLICIES,
  QuotaError,
  QuotaInformation,
  sleep,
  type Clock,
  type DriverErrorCode,
  type Instance,
  type LaunchedInstance,
  type NodeCleanup,
  type NodeLaunch,
  type NodeRequestHandler,
  type Provider,
  type ProviderConfig,
  type RandomSource,
  type Readiness,
  type Resources,
} from '@nodepool/core';
import type { LoginScanner } from '@nodepool/launcher';
import { placeKey, type Day } from '../day/day.js';
import type { Draws, DrawnLaunch } from './draws.js';

/** A host key for every instance. */
const HOST_KEY = 'ssh-ed25519 AAAA';
/** Time until the login of a machine answers that the model has not created, e.g. of a static one (ms). */
const OTHER_LOGIN_MS = 1000;
/** The resource of a node whose need is not known. */
const ONE_INSTANCE: Resources = { instances: 1 };

export interface ModelOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly day: Day;
  readonly draws: Draws;
}

/** Launches by provider. */
export interface LaunchCount {
  started: number;
  failed: number;
}

/** All clouds of one replay. */
export class ModelClouds {
  readonly launches = new Map<string, LaunchCount>();
  private readonly logins = new Map<string, DrawnLaunch>();
  private created = 0;

  constructor(readonly options: ModelOptions) {}

  /** Returns the provider that stands for the one of the driver. */
  provider(config: ProviderConfig): Provider {
    const launches = { started: 0, failed: 0 };
    this.launches.set(config.name, launches);
    return new ModelProvider(config, this, launches);
  }

  /** Returns the address of a new instance, whose login answers as drawn. */
  address(launch: DrawnLaunch): string {
    this.created += 1;
    const address = `instance-${this.created}`;
    this.logins.set(address, launch);
    return address;
  }

  remove(address: string): void {
    this.logins.delete(address);
  }

  /** Returns the scanner of the logins. */
  scanner(): LoginScanner {
    const { clock } = this.options;
    return {
      scan: async ({ host, signal, onConnected }) => {
        const login = this.logins.get(host);
        if (login === undefined) {
          await sleep(clock, OTHER_LOGIN_MS, signal);
          return [HOST_KEY];
        }
        await sleep(clock, login.bootingMs, signal);
        onConnected?.();
        await sleep(clock, login.loginMs, signal);
        if (login.error !== undefined) throw failure(login.error);
        return [HOST_KEY];
      },
    };
  }
}

interface ModelInstance extends Instance {
  readonly need: Resources;
}

class ModelProvider implements Provider {
  readonly getQuotaLimits?: () => Promise<QuotaInformation>;
  private readonly limits: QuotaInformation | undefined;
  private readonly instances = new Map<string, ModelInstance>();
  private listing: readonly Instance[] | undefined;
  private readonly deletions = new Map<string, Promise<void>>();
  private used = QuotaInformation.NOTHING;

  constructor(
    readonly config: ProviderConfig,
    private readonly clouds: ModelClouds,
    private readonly count: LaunchCount,
  ) {
    const limits = clouds.options.day.limits.get(config.name);
    if (limits === undefined) return;
    const quota = QuotaInformation.limit(limits);
    this.limits = quota;
    this.getQuotaLimits = () => Promise.resolve(quota);
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  stop(): void {
    // The replay ends with its clock.
  }

  join(): Promise<void> {
    return Promise.resolve();
  }

  labelReady(): Readiness {
    return { ready: true };
  }

  getRequestHandler(): NodeRequestHandler {
    let open = 0;
    return {
      launch: async (launch) => {
        open += 1;
        try {
          return await this.launch(launch);
        } finally {
          open -= 1;
        }
      },
      launchesComplete: () => open === 0,
    };
  }

  getQuotaForLabel(pool: string, label: string): Promise<QuotaInformation> {
    return Promise.resolve(QuotaInformation.use(this.needOf(pool, label)));
  }

  cleanupNode({ nodeId, externalId }: NodeCleanup): Promise<void> {
    if (!this.deletions.has(nodeId)) this.deletions.set(nodeId, this.delete(externalId));
    return Promise.resolve();
  }

  async waitForNodeCleanup(nodeId: string): Promise<void> {
    await this.deletions.get(nodeId);
    this.deletions.delete(nodeId);
  }

  cleanupLeakedResources(): Promise<void> {
    return Promise.resolve();
  }

  listNodes(): Promise<readonly Instance[]> {
    this.listing ??= [...this.instances.values()];
    return Promise.resolve(this.listing);
  }

  private async launch({ pool, label, tags, signal }: NodeLaunch): Promise<LaunchedInstance> {
    const { clock, random, draws } = this.clouds.options;
    this.count.started += 1;
    const need = this.needOf(pool, label);
    const used = this.used.add(QuotaInformation.use(need));
    if (this.limits?.fits(used) === false) {
      this.count.failed += 1;
      throw new QuotaError('the limits that the cloud reported are reached');
    }
    this.used = used;
    try {
      const drawn = draws.launch(this.config.name, label, clock.now(), random);
      if (drawn.error !== undefined) this.count.failed += 1;
      await sleep(clock, drawn.creatingMs, signal);
      // A failure with a later stage belongs to the login, during which the instance exists.
      if (drawn.error !== undefined && drawn.bootingMs + drawn.loginMs === 0) throw failure(drawn.error);
      const address = this.clouds.address(drawn);
      const known = { externalId: address, interfaceIp: address, resources: need, tags: { ...tags } };
      const instance = { ...known, ready: true, deleted: false, need };
      this.instances.set(address, instance);
      this.listing = undefined;
      return instance;
    } catch (error) {
      this.used = this.used.subtract(QuotaInformation.use(need));
      throw error;
    }
  }

  private async delete(externalId: NodeCleanup['externalId']): Promise<void> {
    const instance = typeof externalId === 'string' ? this.instances.get(externalId) : undefined;
    if (instance === undefined || typeof externalId !== 'string') return;
    const { clock, random, draws } = this.clouds.options;
    await sleep(clock, draws.deletion(this.config.name, random));
    this.instances.delete(externalId);
    this.used = this.used.subtract(QuotaInformation.use(instance.need));
    this.listing = undefined;
    this.clouds.remove(externalId);
  }

  private needOf(pool: string, label: string): Resources {
    return this.clouds.options.day.needs.get(placeKey(this.config.name, pool, label)) ?? ONE_INSTANCE;
  }
}

/** Returns the error of a recorded code. */
function failure(code: string): Error {
  const known = Object.hasOwn(ERROR_POLICIES, code) ? (code as DriverErrorCode) : 'unexpected';
  return driverError(known, `it failed with ${code}, as in the journal`);
}
