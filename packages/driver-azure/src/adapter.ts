/** The adapter between the state-machine framework and an Azure subscription. */

import {
  AbortedError,
  type Adapter,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type ProviderContext,
  type QuotaInformation,
  type Readiness,
  type Resource,
  type SiteDescription,
  type StateMachine,
} from '@nodepool/core';
import { readAuth } from './auth.js';
import { Arm } from './client/arm.js';
import { Client } from './client/client.js';
import type { AzureLabel, AzureProvider } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { sameLocation } from './identity.js';
import { AzureImages } from './images.js';
import { instanceOf } from './instance.js';
import { quotaLimits, quotaOfLabel } from './quota.js';
import { deleteResource, listTagged } from './resources.js';
import { ProviderSession } from './provider-session.js';
import { describeSite } from './site.js';

/** Deadline of reads that several machines share (ms). */
const SHARED_CALL_TIMEOUT_MS = 120_000;
/** Minimum time between two lookups of a label's missing resources (ms). */
const REFRESH_INTERVAL_MS = 300_000;

/** Objects that exist after `start`. */
interface Started {
  readonly context: ProviderContext;
  readonly session: ProviderSession;
}

export class AzureAdapter implements Adapter<AzureLabel> {
  readonly listIntervalMs = 10_000;
  /** Names contain the launch attempt. */
  readonly uniqueIds = true;
  readonly images: AzureImages;
  private readonly stopped = new AbortController();
  private started: Started | undefined;

  constructor(private readonly config: AzureProvider) {
    this.images = new AzureImages(() => this.session, config);
  }

  /**
   * Logs in, creates the resource group if it is missing, and reads the resources that labels refer to, so that wrong
   * names are reported at startup. A provider without labels and disk images has nothing to create in the group.
   */
  async start(context: ProviderContext): Promise<void> {
    this.started?.session.client.arm.stop();
    const session = this.createSession(context);
    this.started = { context, session };
    const labels = [...this.config.pools.values()].flatMap((pool) => [...pool.labels.values()]);
    if (labels.length > 0 || this.config.diskImages.size > 0) {
      await session.client.ensureResourceGroup(this.config.resourceGroupLocation, session.makeCall());
    }
    await Promise.all(labels.map((label) => session.lookups.refresh(label, Infinity)));
  }

  stop(): void {
    this.stopped.abort(new AbortedError('the provider was stopped'));
    this.started?.session.client.arm.stop();
  }

  getCreateStateMachine(request: CreateRequest<AzureLabel>, saved: JsonValue): StateMachine {
    return new CreateMachine(this.session, request, saved);
  }

  getDeleteStateMachine(externalId: ExternalId, saved: JsonValue): StateMachine {
    return new DeleteMachine(this.session, externalId, saved);
  }

  /** Lists all VMs of the subscription in the location, because foreign VMs also use its quota. */
  async listInstances(call: Call): Promise<readonly Instance[]> {
    const { client, lookups } = this.session;
    const [vms, sizes] = await Promise.all([client.listVms(call), lookups.sizes.read()]);
    return vms
      .filter(({ location }) => sameLocation(location, this.config.location))
      .map((vm) => instanceOf(vm, sizes));
  }

  listResources(call: Call): Promise<readonly Resource[]> {
    return listTagged(this.session, call);
  }

  deleteResource(resource: Resource, call: Call): Promise<void> {
    return deleteResource(this.session, resource, call);
  }

  getQuotaLimits(call: Call): Promise<QuotaInformation> {
    return quotaLimits(this.session, call);
  }

  getQuotaForLabel(label: AzureLabel, _call: Call, machineType?: string): Promise<QuotaInformation> {
    return quotaOfLabel(this.session, label, machineType);
  }

  /** Rechecks a label that is not ready: the cloud does not notify when a missing resource is created. */
  labelReady(label: AzureLabel): Readiness {
    const { session, context } = this.running;
    const readiness = session.lookups.readiness(label);
    if (!readiness.ready) {
      context.tasks.run(`look up the resources of label ${label.name}`, () =>
        session.lookups.refresh(label, REFRESH_INTERVAL_MS),
      );
    }
    return readiness;
  }

  describeSite(call: Call): Promise<SiteDescription> {
    return describeSite(this.session, call);
  }

  private get running(): Started {
    if (this.started === undefined) throw new Error(`provider ${this.config.name} was not started`);
    return this.started;
  }

  private get session(): ProviderSession {
    return this.running.session;
  }

  private createSession({ clock, random, log, onApiCall }: ProviderContext): ProviderSession {
    const { callsPerSecond, resourceGroup, location, authPath } = this.config;
    const makeCall = (): Call => ({
      signal: this.stopped.signal,
      deadline: clock.monotonic() + SHARED_CALL_TIMEOUT_MS,
      log,
    });
    const arm = new Arm({ readAuth: () => readAuth(authPath), clock, callsPerSecond, onApiCall });
    return new ProviderSession(this.config, new Client(arm, { resourceGroup, location }), clock, random, makeCall);
  }
}
