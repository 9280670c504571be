/** The adapter between the state-machine framework and an AWS account. */

import {
  AbortedError,
  QuotaInformation,
  type Adapter,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type PoolConfig,
  type ProviderContext,
  type Resource,
  type Resources,
  type SiteDescription,
  type StateMachine,
} from '@nodepool/core';
import { Connection } from './client/connection.js';
import type { AwsLabel, AwsProvider } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { AwsImages } from './images.js';
import { ImportResults } from './image-imports.js';
import { instanceOf, instanceOfHost } from './instance.js';
import type { TypeSize } from './instance-types.js';
import { choiceOf, type Choice } from './offers.js';
import { hostResource, isKnownFamily, resourcesOf, volumeResources } from './quota.js';
import { QuotaLimits } from './quota-limits.js';
import { deleteResource, listResources } from './resources.js';
import { ProviderSession } from './session.js';
import { describeSite } from './site.js';

/** Deadline of calls that several machines share (ms). */
const SHARED_CALL_TIMEOUT_MS = 120_000;
/** Minimum interval between listings (ms). */
const LIST_INTERVAL_MS = 3000;
const CONSOLE_CHARACTERS = 32_000;

/** Objects that exist after `start`. */
interface Started {
  readonly context: ProviderContext;
  readonly session: ProviderSession;
  readonly limits: QuotaLimits;
}

export class AwsAdapter implements Adapter<AwsLabel> {
  readonly listIntervalMs = LIST_INTERVAL_MS;
  /** EC2 never uses an id again. */
  readonly uniqueIds = true;
  readonly images: AwsImages;
  private readonly importResults = new ImportResults(() => this.session);
  private readonly stopped = new AbortController();
  private started: Started | undefined;
  /** Installation of the launches; undefined before the first one. */
  private installation: string | undefined;
  private readonly reportedTypes = new Set<string>();

  constructor(
    private readonly config: AwsProvider,
    private readonly env: Readonly<Record<string, string | undefined>> = process.env,
  ) {
    this.images = new AwsImages(() => this.session, config);
  }

  /** Reads the subnets of the pools, so that wrong credentials, regions and subnets are reported at startup. */
  async start(context: ProviderContext): Promise<void> {
    this.started?.session.connection.stop();
    const session = this.createSession(context);
    this.started = { context, session, limits: new QuotaLimits(session) };
    for (const image of this.config.imagesOfAnyOwner) {
      context.log.warn('A cloud image has no "owners": an image of any account that passes its filters is used', {
        cloud_image: image,
      });
    }
    const networks = [...this.config.pools.values()].flatMap(({ labels }) => [...labels.values()].slice(0, 1));
    await Promise.all(networks.map(({ network }) => session.lookups.zones(network)));
    if (networks.every(({ network }) => network.subnetIds.length === 0)) {
      await session.ec2.describeTypes(this.usedTypes(), session.makeCall());
    }
    this.watchInterruptions(session, context);
  }

  stop(): void {
    this.stopped.abort(new AbortedError('the provider was stopped'));
    this.started?.session.connection.stop();
  }

  getCreateStateMachine(request: CreateRequest<AwsLabel>, saved: JsonValue): StateMachine {
    this.installation = request.tags.nodepool_installation;
    return new CreateMachine(this.session, request, saved);
  }

  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    return new DeleteMachine(this.session, externalId);
  }

  /** Lists all instances of the region, because all instances use its quota. */
  async listInstances(call: Call): Promise<readonly Instance[]> {
    const { session } = this;
    const [instances, hosts] = await Promise.all([
      session.ec2.listInstances(call),
      session.usesHosts ? session.ec2.hosts(call) : [],
    ]);
    await session.types.learn(
      instances.flatMap(({ InstanceType }) => InstanceType ?? []),
      call,
    );
    // Instances precede hosts: a search for a launch attempt finds the instance first.
    return [
      ...instances.map((instance) => instanceOf(instance, session)),
      ...hosts.map((host) => instanceOfHost(host, this.config.region)),
    ];
  }

  listResources(call: Call): Promise<readonly Resource[]> {
    return listResources(this.session, call);
  }

  deleteResource(resource: Resource, call: Call): Promise<void> {
    return deleteResource(this.session, resource, call);
  }

  /** Tags the results of interrupted imports, and deletes launch templates that are not in use. */
  async cleanUpUntagged(call: Call): Promise<void> {
    const { installation, session } = this;
    await this.importResults.tagAll(call);
    if (installation !== undefined) await session.fleets.deleteUnused(this.config.name, installation, call);
  }

  getQuotaLimits(call: Call): Promise<QuotaInformation> {
    return this.running.limits.read(call);
  }

  /** Rejects with `ConfigurationError` if the region does not have the type. */
  async getQuotaForLabel(label: AwsLabel, call: Call, machineType?: string): Promise<QuotaInformation> {
    const volume = volumeResources(label.volume);
    if (label.fleet !== undefined) return QuotaInformation.use({ ...(await this.needOfFleet(label, call)), ...volume });
    const choice = choiceOf(label, machineType);
    const { instanceType } = choice;
    const size = await this.sizeOf(label, choice, call);
    const onHost = label.dedicatedHost;
    const need = { ...resourcesOf(size, { ...choice, onHost }), ...volume };
    return QuotaInformation.use(onHost ? { ...need, [hostResource(instanceType)]: 1 } : need);
  }

  getAvailabilityZones(pool: PoolConfig<AwsLabel>): Promise<readonly string[]> {
    for (const { network } of pool.labels.values()) return this.session.lookups.zones(network);
    return Promise.resolve([]);
  }

  async getConsoleLog(externalId: ExternalId, _label: AwsLabel, call: Call): Promise<string | undefined> {
    if (typeof externalId !== 'string') return undefined;
    return (await this.session.ec2.consoleOutput(externalId, call)).slice(-CONSOLE_CHARACTERS);
  }

  describeSite(call: Call): Promise<SiteDescription> {
    return describeSite(this.session.ec2, call);
  }

  /**
   * Returns the resources that a node needs with each type of its fleet, because EC2 chooses the type. Omits types that
   * the region does not have, unless it has none of them.
   */
  private async needOfFleet(label: AwsLabel, call: Call): Promise<Resources> {
    await this.session.types.learn(label.instanceTypes, call);
    const known = label.instanceTypes.filter((type) => this.session.types.known(type) !== undefined);
    const needs = await Promise.all(
      (known.length === 0 ? label.instanceTypes : known).map(async (instanceType) => {
        const choice = { instanceType, market: label.market };
        return resourcesOf(await this.sizeOf(label, choice, call), { ...choice, onHost: false });
      }),
    );
    const [first = { instances: 1 }, ...others] = needs;
    const common = Object.entries(first).filter(([name]) => others.every((need) => name in need));
    return Object.fromEntries(
      common.map(([name, amount]) => [name, Math.min(amount, ...others.map((need) => need[name] ?? amount))]),
    );
  }

  private async sizeOf(label: AwsLabel, { instanceType }: Choice, call: Call): Promise<TypeSize> {
    const key = label.fleet === undefined ? '"instance-type"' : '"instance-types" of the fleet';
    const size = await this.session.types.read(instanceType, `${key} of label ${label.name}`);
    if (!isKnownFamily(instanceType) && !this.reportedTypes.has(instanceType)) {
      this.reportedTypes.add(instanceType);
      call.log.warn('The quota of an instance type is not known; its vCPUs count as those of standard types', {
        instance_type: instanceType,
        vcpus: size.vcpus,
      });
    }
    return size;
  }

  private usedTypes(): readonly string[] {
    const labels = [...this.config.pools.values()].flatMap((pool) => [...pool.labels.values()]);
    return [...new Set(labels.flatMap(({ instanceTypes }) => instanceTypes))];
  }

  private watchInterruptions(session: ProviderSession, { tasks, checkInstances }: ProviderContext): void {
    if (this.config.interruptionQueue === undefined) return;
    tasks.run(`watch the spot interruptions of provider ${this.config.name}`, () =>
      session.interruptions.watch(session.makeCall, checkInstances ?? (() => Promise.resolve())),
    );
  }

  private get running(): Started {
    if (this.started === undefined) throw new Error(`provider ${this.config.name} was not started`);
    return this.started;
  }

  private get session(): ProviderSession {
    return this.running.session;
  }

  private createSession({ clock, random, log, onApiCall }: ProviderContext): ProviderSession {
    const { config, env } = this;
    const connection = new Connection(
      { ...config, credentialsFile: env['AWS_SHARED_CREDENTIALS_FILE'] },
      { clock, onApiCall },
    );
    const makeCall = (): Call => ({
      signal: this.stopped.signal,
      deadline: clock.monotonic() + SHARED_CALL_TIMEOUT_MS,
      log,
    });
    return new ProviderSession(config, connection, clock, random, makeCall, this.images);
  }
}
