/** The adapter between the state-machine framework and an OpenStack cloud. */

import {
  AbortedError,
  type Adapter,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type PoolConfig,
  type ProviderContext,
  type QuotaInformation,
  type Readiness,
  type Resource,
  type ResourceCall,
  type SiteDescription,
  type StateMachine,
} from '@nodepool/core';
import type { Environment } from './client/cloud-files.js';
import { Client } from './client/client.js';
import type { OpenStackLabel, OpenStackProvider } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { Housekeeping } from './housekeeping.js';
import { OpenStackImages } from './images.js';
import { instanceOf } from './instance.js';
import { quotaLimits, quotaOfLabel } from './quota.js';
import { deleteResource, idOf, listTagged } from './resources.js';
import { ProviderSession } from './provider-session.js';
import { describeSite } from './site.js';

/** Deadline of reads that several machines share (ms). */
const SHARED_CALL_TIMEOUT_MS = 120_000;
const CONSOLE_LINES = 200;
/** Minimum time between two lookups of a label's missing resources (ms). */
const REFRESH_INTERVAL_MS = 60_000;

/** Objects that exist after `start`. */
interface Started {
  readonly context: ProviderContext;
  readonly session: ProviderSession;
  readonly housekeeping: Housekeeping;
}

export class OpenStackAdapter implements Adapter<OpenStackLabel> {
  /** Listing servers is expensive: the compute service queries other services for some of the data. */
  readonly listIntervalMs = 2000;
  /** Ids are UUIDs. */
  readonly uniqueIds = true;
  readonly images: OpenStackImages;
  private readonly stopped = new AbortController();
  private started: Started | undefined;

  constructor(
    private readonly config: OpenStackProvider,
    private readonly environment: Environment,
  ) {
    this.images = new OpenStackImages(config, () => this.session);
  }

  /** Logs in and reads the resources that labels refer to: wrong credentials and names are reported at start. */
  async start(context: ProviderContext): Promise<void> {
    if (this.started === undefined) {
      const session = this.createSession(context);
      this.started = { context, session, housekeeping: new Housekeeping(session) };
    }
    const { session } = this.started;
    const labels = [...this.config.pools.values()].flatMap((pool) => [...pool.labels.values()]);
    // The account of a builder may have access to images only.
    await (labels.length === 0 ? session.client.projectId() : session.facts());
    await Promise.all(labels.map((label) => session.lookups.refresh(label, Infinity)));
  }

  async stop(): Promise<void> {
    this.stopped.abort(new AbortedError('the provider was stopped'));
    await this.started?.session.client.close();
  }

  getCreateStateMachine(request: CreateRequest<OpenStackLabel>, saved: JsonValue): StateMachine {
    return new CreateMachine(this.session, request, saved);
  }

  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    return new DeleteMachine(this.session, externalId);
  }

  /** Lists all servers of the project: core finds its own by their tags and counts the others against the quota. */
  async listInstances(call: Call): Promise<readonly Instance[]> {
    const facts = await this.session.facts();
    const [servers, volumeSizes] = await Promise.all([
      this.session.client.compute.listServers(call),
      this.session.volumeSizes(call),
    ]);
    return servers.map((server) => instanceOf(server, facts, volumeSizes));
  }

  listResources(call: ResourceCall): Promise<readonly Resource[]> {
    return listTagged(this.session, call);
  }

  deleteResource(resource: Resource, call: Call): Promise<void> {
    return deleteResource(this.session, resource, call);
  }

  cleanUpUntagged(call: Call): Promise<void> {
    return this.running.housekeeping.run(call);
  }

  getQuotaLimits(call: Call): Promise<QuotaInformation> {
    return quotaLimits(this.session, call);
  }

  getQuotaForLabel(label: OpenStackLabel, _call: Call, machineType?: string): Promise<QuotaInformation> {
    return quotaOfLabel(this.session, label, machineType);
  }

  async getAvailabilityZones(pool: PoolConfig<OpenStackLabel>, call: Call): Promise<readonly string[]> {
    const configured = pool.availabilityZones;
    return configured.length > 0 ? configured : this.session.client.compute.listAvailabilityZones(call);
  }

  /** Rechecks a label that is not ready: the cloud does not notify when a missing resource is created. */
  labelReady(label: OpenStackLabel): Readiness {
    const { session, context } = this.running;
    const readiness = session.lookups.readiness(label);
    if (!readiness.ready) {
      context.tasks.run(`look up the resources of label ${label.name}`, () =>
        session.lookups.refresh(label, REFRESH_INTERVAL_MS),
      );
    }
    return readiness;
  }

  async getConsoleLog(externalId: ExternalId, _label: OpenStackLabel, call: Call): Promise<string | undefined> {
    return this.session.client.compute.consoleOf(idOf(externalId), CONSOLE_LINES, call);
  }

  describeSite(call: Call): Promise<SiteDescription> {
    return describeSite(this.session.client, call);
  }

  private get running(): Started {
    if (this.started === undefined) throw new Error(`provider ${this.config.name} was not started`);
    return this.started;
  }

  private get session(): ProviderSession {
    return this.running.session;
  }

  private createSession({ clock, random, log, onApiCall }: ProviderContext): ProviderSession {
    const { cloud: cloudName, regionName, callsPerSecond } = this.config;
    const makeCall = (): Call => ({
      signal: this.stopped.signal,
      deadline: clock.monotonic() + SHARED_CALL_TIMEOUT_MS,
      log,
    });
    const { environment } = this;
    const client = Client.of({ cloudName, regionName, environment, clock, onApiCall, callsPerSecond, makeCall });
    return new ProviderSession(this.config, client, clock, random, makeCall);
  }
}
