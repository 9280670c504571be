import type { JsonValue } from '../../model/json.js';
import type { ExternalId } from '../../model/node.js';
import type { Call } from '../call.js';
import type { Driver, Instance, ProviderContext, Resource } from '../api.js';
import { DriverError } from '../errors.js';
import type { ImageManager } from '../images.js';
import type { LabelConfig, ProviderConfig } from '../provider-config.js';
import type { SimpleTaskManagerAdapter, SimpleTaskManagerDriver } from '../simple-api.js';
import type { Adapter, CreateRequest, ResourceCall, StateMachine } from '../state-machine-api.js';
import { stateMachineDriver } from '../state-machine/driver.js';
import type { TaskManager } from '../task-manager.js';
import { createTaskManager } from '../task-queue.js';
import { SimpleCreateMachine, SimpleDeleteMachine } from './machines.js';

/**
 * Creates the driver. All remote calls go through one task manager at the provider's `callsPerSecond`, in sequence
 * unless the adapter sets `concurrency`.
 */
export function simpleTaskManagerDriver<L extends LabelConfig, P extends ProviderConfig<L>>(
  definition: SimpleTaskManagerDriver<L, P>,
): Driver {
  return stateMachineDriver<L, P>({
    name: definition.name,
    schema: definition.schema,
    ...(definition.siteGuide === undefined ? {} : { siteGuide: definition.siteGuide }),
    getProviderConfig: (section, context) => definition.getProviderConfig(section, context),
    getAdapter: (config) => new SimpleAdapter<L>(config, definition.getAdapter(config)),
  });
}

class SimpleAdapter<L extends LabelConfig> implements Adapter<L> {
  readonly images?: ImageManager;
  readonly listIntervalMs?: number;
  readonly uniqueIds: boolean;
  readonly getQuotaLimits?: NonNullable<Adapter<L>['getQuotaLimits']>;
  readonly getQuotaForLabel?: NonNullable<Adapter<L>['getQuotaForLabel']>;
  readonly getAvailabilityZones?: NonNullable<Adapter<L>['getAvailabilityZones']>;
  readonly getConsoleLog?: NonNullable<Adapter<L>['getConsoleLog']>;
  readonly describeSite?: NonNullable<Adapter<L>['describeSite']>;
  private manager: TaskManager | undefined;

  constructor(
    private readonly config: ProviderConfig<L>,
    private readonly simple: SimpleTaskManagerAdapter<L>,
  ) {
    if (simple.images !== undefined) this.images = simple.images;
    this.uniqueIds = simple.uniqueIds === true;
    if (simple.listIntervalMs !== undefined) this.listIntervalMs = simple.listIntervalMs;
    const limits = simple.getQuotaLimits?.bind(simple);
    if (limits !== undefined) this.getQuotaLimits = (call) => limits(this.tasks, call);
    const need = simple.getQuotaForLabel?.bind(simple);
    if (need !== undefined) {
      this.getQuotaForLabel = (label, call, machineType) => need(this.tasks, label, call, machineType);
    }
    const zones = simple.getAvailabilityZones?.bind(simple);
    if (zones !== undefined) this.getAvailabilityZones = (pool, call) => zones(this.tasks, pool, call);
    const consoleLog = simple.getConsoleLog?.bind(simple);
    if (consoleLog !== undefined) {
      this.getConsoleLog = (externalId, label, call) => consoleLog(this.tasks, externalId, label, call);
    }
    const describe = simple.describeSite?.bind(simple);
    if (describe !== undefined) this.describeSite = (call) => describe(this.tasks, call);
  }

  async start(context: ProviderContext): Promise<void> {
    this.manager ??= createTaskManager({
      clock: context.clock,
      callsPerSecond: this.config.callsPerSecond,
      ...(this.simple.concurrency === undefined ? {} : { concurrency: this.simple.concurrency }),
      onApiCall: context.onApiCall,
      log: context.log.with({ provider: this.config.name }),
    });
    await this.simple.start?.(context, this.manager);
  }

  async stop(): Promise<void> {
    this.manager?.stop();
    await this.manager?.join();
    await this.simple.stop?.();
  }

  getCreateStateMachine(request: CreateRequest<L>, saved: JsonValue): StateMachine {
    return new SimpleCreateMachine(request, saved, (call) => this.simple.createInstance(this.tasks, request, call));
  }

  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    const remove = (call: Call): Promise<void> => this.simple.deleteInstance(this.tasks, externalId, call);
    return new SimpleDeleteMachine(externalId, this.uniqueIds, remove);
  }

  async listInstances(call: Call): Promise<readonly Instance[]> {
    return this.simple.listInstances(this.tasks, call);
  }

  async listResources(call: ResourceCall): Promise<readonly Resource[]> {
    const [instances, others] = await Promise.all([
      call.listInstances(),
      this.simple.listResources?.(this.tasks, call) ?? [],
    ]);
    const found = instances
      .filter((instance) => !instance.deleted)
      .map(({ externalId, hostname, tags }) => ({
        kind: 'instance',
        externalId,
        name: hostname ?? (typeof externalId === 'string' ? externalId : JSON.stringify(externalId)),
        tags,
      }));
    return [...found, ...others];
  }

  async deleteResource(resource: Resource, call: Call): Promise<void> {
    if (resource.kind === 'instance' || this.simple.deleteResource === undefined) {
      await this.simple.deleteInstance(this.tasks, resource.externalId, call);
    } else {
      await this.simple.deleteResource(this.tasks, resource, call);
    }
  }

  private get tasks(): TaskManager {
    if (this.manager !== undefined) return this.manager;
    throw new DriverError('unexpected', `provider ${this.config.name} was not started`, { outcome: 'not-applied' });
  }
}
