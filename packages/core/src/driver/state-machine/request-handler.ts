/** A request handler that launches nodes by state machines. */

import type { LaunchedInstance, NodeLaunch, NodeRequestHandler, RequestInfo } from '../api.js';
import { ConfigurationError, DriverError, toDriverError } from '../errors.js';
import type { LabelConfig, PoolConfig } from '../provider-config.js';
import type { Adapter, StateMachine } from '../state-machine-api.js';
import { creationGuard } from './creation-guard.js';
import { identityOf } from './instance-identity.js';
import type { MachineWork } from './machine-run.js';
import type { MachineRunner } from './machine-runner.js';

export interface RequestHandlerOptions<L extends LabelConfig> {
  readonly provider: string;
  readonly pool: PoolConfig<L>;
  readonly request: RequestInfo;
  readonly adapter: Adapter<L>;
  readonly runner: MachineRunner;
  /** Called at the end of each launch. `madeNothing` is true if the launch certainly left no resources. */
  readonly onEnd: (nodeId: string, madeNothing: boolean) => void;
}

export class StateMachineRequestHandler<L extends LabelConfig> implements NodeRequestHandler {
  private alive = 0;

  constructor(private readonly options: RequestHandlerOptions<L>) {}

  launchesComplete(): boolean {
    return this.alive === 0;
  }

  async launch(launch: NodeLaunch): Promise<LaunchedInstance> {
    this.alive += 1;
    let madeNothing = false;
    try {
      const name = `launch of node ${launch.nodeId}`;
      const instance = await this.options.runner.run({
        name,
        kind: 'create',
        nodeId: launch.nodeId,
        makeMachine: () => this.makeMachine(launch),
        guard: creationGuard(this.options.adapter.uniqueIds === true ? undefined : identityOf(launch.tags)),
        call: launch,
        progress: progressOf(launch),
        onRetry: launch.onRetry,
      });
      if (instance === undefined) throw new DriverError('unexpected', `${name} ended without an instance`);
      return instance;
    } catch (error) {
      madeNothing = toDriverError(error).outcome === 'not-applied';
      throw error;
    } finally {
      this.alive -= 1;
      this.options.onEnd(launch.nodeId, madeNothing);
    }
  }

  private makeMachine(launch: NodeLaunch): StateMachine {
    const { provider, pool, request, adapter } = this.options;
    const label = pool.labels.get(launch.label);
    if (label === undefined) {
      throw new ConfigurationError(`label ${launch.label} is not in pool ${pool.name} of provider ${provider}`);
    }
    const { hostname, availabilityZone, machineType, imageExternalId, tags, externalId } = launch;
    return adapter.getCreateStateMachine(
      { hostname, label, pool, availabilityZone, machineType, imageExternalId, tags, request, externalId },
      launch.saved,
    );
  }
}

/** Saves nothing before the external id is known. */
function progressOf(launch: NodeLaunch): NonNullable<MachineWork['progress']> {
  return (machine) => {
    const { externalId } = machine;
    if (externalId === undefined) return undefined;
    const saved = machine.save();
    return () => launch.save({ externalId, machine: saved });
  };
}
