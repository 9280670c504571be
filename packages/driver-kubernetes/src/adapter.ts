/** The adapter between the state-machine framework and a cluster. */

import {
  DriverError,
  nextTurn,
  type Adapter,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type ProviderContext,
  type QuotaInformation,
  type Resource,
  type StateMachine,
} from '@nodepool/core';
import { Client } from './client/client.js';
import { clusterAccess, type ClusterAccess, type Environment } from './client/kubeconfig.js';
import { ClusterTransport } from './client/transport.js';
import { Cluster } from './cluster.js';
import type { KubernetesLabel, KubernetesProvider } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { listInstances } from './instance.js';
import { needOf, projectLimits } from './quota.js';
import { deleteResource, listResources } from './resources.js';

const START_TIMEOUT_MS = 60_000;

export class KubernetesAdapter implements Adapter<KubernetesLabel> {
  /** Names contain the launch attempt. */
  readonly uniqueIds = true;
  /** Only pods in existing projects share a quota; namespaces and projects of nodes have none before they exist. */
  readonly getQuotaLimits?: NonNullable<Adapter['getQuotaLimits']>;
  private readonly stopped = new AbortController();
  private started: Cluster | undefined;

  constructor(
    private readonly config: KubernetesProvider,
    private readonly environment: Environment,
  ) {
    if (config.flavour === 'openshiftpods') this.getQuotaLimits = (call) => projectLimits(this.cluster, call);
  }

  /** Reads the lists that the watches continue, so that wrong credentials and addresses are reported at startup. */
  async start({ clock, random, log, onApiCall }: ProviderContext): Promise<void> {
    if (this.started === undefined) {
      const { config, environment } = this;
      const access = clusterAccess(config.contextName, environment);
      // The transport loads undici, which takes a turn of its own.
      await nextTurn();
      const readAccess = (): ClusterAccess => clusterAccess(access.context, environment);
      const transport = new ClusterTransport({ access, readAccess, env: environment.env, clock, log });
      const { callsPerSecond } = config;
      const client = new Client({ transport, clock, onApiCall, callsPerSecond, server: access.server });
      this.started = new Cluster({ config, client, clock, random, log });
    }
    const deadline = clock.monotonic() + START_TIMEOUT_MS;
    await this.started.start({ signal: this.stopped.signal, deadline, log });
  }

  async stop(): Promise<void> {
    this.stopped.abort(new DriverError('aborted', 'the provider was stopped'));
    await this.started?.stop();
  }

  getCreateStateMachine(request: CreateRequest<KubernetesLabel>, saved: JsonValue): StateMachine {
    return new CreateMachine(this.cluster, request, saved);
  }

  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    return new DeleteMachine(this.cluster, externalId);
  }

  listInstances(call: Call): Promise<readonly Instance[]> {
    return listInstances(this.cluster, call);
  }

  listResources(call: Call): Promise<readonly Resource[]> {
    return listResources(this.cluster, call);
  }

  deleteResource(resource: Resource, call: Call): Promise<void> {
    return deleteResource(this.cluster, resource, call);
  }

  async getQuotaForLabel(label: KubernetesLabel): Promise<QuotaInformation> {
    return needOf(label);
  }

  private get cluster(): Cluster {
    if (this.started !== undefined) return this.started;
    throw new DriverError('unexpected', `provider ${this.config.name} was not started`, { outcome: 'not-applied' });
  }
}
