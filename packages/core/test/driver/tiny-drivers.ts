/** Drivers of the tiny cloud on the three levels of the driver API. */

import {
  BaseTaskManagerProvider,
  InstanceFailedError,
  NotFoundError,
  PendingCall,
  QuotaInformation,
  attemptLookup,
  isJsonObject,
  simpleTaskManagerDriver,
  sleep,
  stateMachineDriver,
  toDriverError,
  type Adapter,
  type Advance,
  type Call,
  type CreateRequest,
  type Driver,
  type ExternalId,
  type Instance,
  type JsonValue,
  type LabelConfig,
  type LaunchedInstance,
  type LeakFilter,
  type MachineCall,
  type NodeCleanup,
  type NodeLaunch,
  type NodeRequestHandler,
  type Provider,
  type ProviderConfig,
  type ProviderContext,
  type Readiness,
  type Resource,
  type StateMachine,
} from '../../src/index.js';
import type { TinyCloud } from './tiny-cloud.js';

const label: LabelConfig = {
  name: 'small',
  image: { kind: 'cloud-image', name: 'debian' },
  connection: { type: 'ssh', port: 22, username: 'zuul', pythonPath: 'auto', shellType: null },
  hostKeyChecking: true,
  consoleLog: false,
};

export function tinyConfig(changes: Partial<ProviderConfig> = {}): ProviderConfig {
  return {
    name: 'tiny',
    driver: 'tiny',
    priority: 100,
    maxConcurrency: Infinity,
    launchRetries: 3,
    launchTimeoutMs: 3_600_000,
    bootTimeoutMs: 60_000,
    callsPerSecond: Infinity,
    pools: new Map([
      [
        'main',
        {
          name: 'main',
          priority: 100,
          maxServers: Infinity,
          limits: {},
          nodeAttributes: {},
          availabilityZones: ['a', 'b'],
          labels: new Map([['small', label]]),
        },
      ],
    ]),
    diskImages: new Map(),
    imageFormat: undefined,
    section: {},
    ...changes,
  };
}

/** Creates a driver of the given cloud. */
type MakeDriver = (cloud: TinyCloud) => Driver;

const common = {
  schema: {},
  getProviderConfig: (): ProviderConfig => tinyConfig(),
};

/** A driver on the state-machine framework, whose instances need an address. */
export const machineDriver: MakeDriver = (cloud) =>
  stateMachineDriver<LabelConfig, ProviderConfig>({
    ...common,
    name: 'tiny-machine',
    getAdapter: () => machineAdapter(cloud),
  });

/** Creates an adapter; `overrides` replaces methods to simulate faulty adapters. */
export function machineAdapter(cloud: TinyCloud, overrides: Partial<Adapter> = {}): Adapter {
  return {
    getCreateStateMachine: (request, saved) => new CreateMachine(cloud, request, saved),
    getDeleteStateMachine: (externalId) => new DeleteMachine(cloud, externalId),
    listInstances: (call) => cloud.list(call.signal),
    listResources: async (call) => (await cloud.list(call.signal)).map(asResource),
    deleteResource: (resource, call) => cloud.delete(idOf(resource.externalId), call.signal),
    getQuotaLimits: async () => QuotaInformation.limit({ instances: 10 }),
    getAvailabilityZones: async (pool) => pool.availabilityZones,
    labelReady: () => ({ ready: true }),
    ...overrides,
  };
}

export function driverOf(adapter: Adapter): Driver {
  return stateMachineDriver<LabelConfig, ProviderConfig>({
    ...common,
    name: 'tiny-machine',
    getAdapter: () => adapter,
  });
}

/** Returns the external id as a string, the only form in the tiny cloud. */
function idOf(externalId: ExternalId | undefined): string {
  if (typeof externalId !== 'string') throw new TypeError('the tiny cloud has no such ids');
  return externalId;
}

function asResource(instance: Instance): Resource {
  return { kind: 'instance', externalId: instance.externalId, name: instance.hostname ?? '', tags: instance.tags };
}

/** Creates an instance, waits for the boot, attaches an address, and waits until a listing shows it. */
class CreateMachine implements StateMachine {
  state: 'start' | 'creating' | 'looking-up' | 'booting' | 'attaching' | 'checking' | 'complete' = 'start';
  externalId: ExternalId | undefined;
  private readonly creation = new PendingCall<string>();
  private readonly attachment = new PendingCall<void>();
  private readonly lookup;

  constructor(
    private readonly cloud: TinyCloud,
    private readonly request: CreateRequest,
    saved: JsonValue,
  ) {
    this.lookup = attemptLookup(request.tags.nodepool_launch_attempt);
    this.externalId = request.externalId ?? undefined;
    if (!isJsonObject(saved)) return;
    if (saved.state === 'creating' || saved.state === 'looking-up') this.state = 'looking-up';
    else if (saved.state === 'booting') this.state = 'booting';
    else if (saved.state === 'attaching' || saved.state === 'checking') this.state = 'checking';
  }

  save(): JsonValue {
    return { state: this.state };
  }

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'creating';
        return this.creation.start(this.cloud.create(this.request.hostname, { ...this.request.tags }, call.signal));
      case 'creating':
        return this.creation.underway ?? this.created(call);
      case 'looking-up':
        return this.lookUp(call);
      case 'booting':
        return this.boot(call);
      case 'attaching':
        return this.attachment.underway ?? this.attached();
      case 'checking':
        return this.check(call);
      case 'complete':
        return { next: 'complete' };
    }
  }

  private created(call: MachineCall): Advance {
    try {
      this.externalId = this.creation.take();
    } catch (error) {
      if (toDriverError(error).outcome === 'not-applied') throw error;
      this.state = 'looking-up';
      return this.lookUp(call);
    }
    this.state = 'booting';
    return { next: 'listing' };
  }

  private lookUp(call: MachineCall): Advance {
    const result = this.lookup.check(call);
    if (result.found === 'unknown') return result.advance;
    if (result.found === 'nothing') throw new NotFoundError('the attempt has left nothing');
    this.externalId = result.instance.externalId;
    this.state = 'booting';
    return this.boot(call);
  }

  private boot(call: MachineCall): Advance {
    const instance = this.listed(call);
    if (instance?.ready !== true) return { next: 'listing' };
    this.state = 'attaching';
    return this.attachment.start(this.cloud.attach(idOf(this.externalId), call.signal));
  }

  private attached(): Advance {
    this.attachment.take();
    this.state = 'checking';
    return { next: 'listing' };
  }

  private check(call: MachineCall): Advance {
    const instance = this.listed(call);
    if (instance === undefined) return { next: 'listing' };
    if (instance.interfaceIp === undefined) {
      this.state = 'attaching';
      return this.attachment.start(this.cloud.attach(idOf(this.externalId), call.signal));
    }
    this.state = 'complete';
    return { next: 'complete', instance };
  }

  private listed(call: MachineCall): Instance | undefined {
    const instance = this.externalId === undefined ? undefined : call.listing?.byExternalId(this.externalId);
    if (instance?.failed !== undefined) throw new InstanceFailedError(instance.failed);
    return instance;
  }
}

class DeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'waiting' | 'complete' = 'start';
  private readonly deletion = new PendingCall<void>();

  constructor(
    private readonly cloud: TinyCloud,
    readonly externalId: ExternalId,
  ) {}

  save(): JsonValue {
    return { state: this.state };
  }

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'deleting';
        return this.deletion.start(this.cloud.delete(idOf(this.externalId), call.signal));
      case 'deleting':
        if (this.deletion.underway !== undefined) return this.deletion.underway;
        this.deletion.take();
        this.state = 'waiting';
        return { next: 'listing' };
      case 'waiting':
        if (call.listing === undefined || call.listing.byExternalId(this.externalId) !== undefined) {
          return { next: 'listing' };
        }
        this.state = 'complete';
        return { next: 'complete' };
      case 'complete':
        return { next: 'complete' };
    }
  }
}

/** A driver on the simple framework. */
export const simpleDriver: MakeDriver = (cloud) => {
  const task = { service: 'compute', method: 'POST' };
  return simpleTaskManagerDriver<LabelConfig, ProviderConfig>({
    ...common,
    name: 'tiny-simple',
    getAdapter: () => ({
      createInstance: (tasks, { hostname, tags }, call) =>
        tasks.submit(
          { ...task, operation: 'create', main: (signal) => cloud.create(hostname, { ...tags }, signal) },
          call,
        ),
      deleteInstance: (tasks, id, call) =>
        tasks.submit({ ...task, operation: 'delete', main: (signal) => cloud.delete(idOf(id), signal) }, call),
      listInstances: (tasks, call) =>
        tasks.submit({ ...task, operation: 'list', main: (signal) => cloud.list(signal) }, call),
    }),
  });
};

/** A driver that implements the plain interfaces, with a task manager. */
export const plainDriver: MakeDriver = (cloud) => ({
  ...common,
  name: 'tiny-plain',
  getProvider: (config) => new PlainProvider(config, cloud),
});

class PlainProvider extends BaseTaskManagerProvider implements Provider {
  private context: ProviderContext | undefined;
  private readonly cleanups = new Map<string, NodeCleanup>();
  private readonly stopping = new AbortController();

  constructor(
    config: ProviderConfig,
    private readonly cloud: TinyCloud,
  ) {
    super(config);
  }

  override async start(context: ProviderContext): Promise<void> {
    await super.start(context);
    this.context = context;
  }

  override stop(): void {
    this.stopping.abort(new Error('the provider was stopped'));
    super.stop();
  }

  labelReady(): Readiness {
    return { ready: true };
  }

  getRequestHandler(): NodeRequestHandler {
    let alive = 0;
    return {
      launchesComplete: () => alive === 0,
      launch: async (launch) => {
        alive += 1;
        try {
          return await this.launch(launch);
        } finally {
          alive -= 1;
        }
      },
    };
  }

  async cleanupNode(cleanup: NodeCleanup): Promise<void> {
    this.cleanups.set(cleanup.nodeId, cleanup);
  }

  async waitForNodeCleanup(nodeId: string): Promise<void> {
    const cleanup = this.cleanups.get(nodeId)!;
    for (;;) {
      const instances = await this.listNodes(cleanup);
      const left = instances.filter((instance) => instance.tags.nodepool_node_id === nodeId);
      if (left.length === 0) return;
      for (const { externalId } of left) await this.remove(externalId, cleanup);
      await sleep(this.clock, 1000, cleanup.signal);
    }
  }

  async cleanupLeakedResources(round: LeakFilter, call: Call): Promise<void> {
    const leaked = await round.leaked((await this.listNodes(call)).map(asResource));
    for (const { externalId } of leaked) await this.remove(externalId, call);
  }

  async listNodes(call: Call): Promise<readonly Instance[]> {
    return this.submitTask({ ...this.task('list'), main: (signal) => this.cloud.list(signal) }, call);
  }

  private async launch(given: NodeLaunch): Promise<LaunchedInstance> {
    const signal = AbortSignal.any([given.signal, this.stopping.signal]);
    const call = { ...given, signal };
    try {
      const create = {
        ...this.task('create'),
        main: (s: AbortSignal) => this.cloud.create(given.hostname, { ...given.tags }, s),
      };
      const externalId = await this.submitTask(create, call);
      await given.save({ externalId, machine: null });
      for (;;) {
        const instance = (await this.listNodes(call)).find((listed) => listed.externalId === externalId);
        if (instance?.ready === true) return instance;
        await sleep(this.clock, 1000, signal);
      }
    } catch (error) {
      throw signal.aborted ? Object.assign(toDriverError(error), { code: 'aborted' }) : error;
    }
  }

  private async remove(externalId: ExternalId, call: Call): Promise<void> {
    try {
      await this.submitTask(
        { ...this.task('delete'), main: (signal) => this.cloud.delete(idOf(externalId), signal) },
        call,
      );
    } catch (error) {
      if (toDriverError(error).code !== 'not-found') throw error;
    }
  }

  private task(operation: string): { service: string; method: string; operation: string } {
    return { service: 'compute', method: 'POST', operation };
  }

  private get clock(): ProviderContext['clock'] {
    return this.context!.clock;
  }
}
