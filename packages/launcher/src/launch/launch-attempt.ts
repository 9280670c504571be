/** One attempt of a launch: creates the instance, then waits for its login. */

import {
  AbortedError,
  DriverError,
  INTERRUPTED_LAUNCH,
  InstanceFailedError,
  isJsonObject,
  linkSignals,
  toDriverError,
  type ExternalId,
  type ImageUpload,
  type InstanceTags,
  type LabelConfig,
  type LaunchedInstance,
  type NodeData,
  type NodeProgress,
  DriverCall,
  driverCall,
} from '@nodepool/core';
import { type LauncherContext, unixSeconds } from '../context.js';
import type { LaunchStage } from '@nodepool/status';
import { placeOf, type LaunchJob } from './launch-job.js';
import { readyNode, leftoverNode } from './node-record.js';

/** Limit of the time for reading the console of an instance, milliseconds. */
const CONSOLE_TIMEOUT_MS = 60_000;

/** The instance came up without an address. */
export class NoAddressError extends InstanceFailedError {}

export class LaunchAttempt {
  private readonly deadline: number;
  private externalId: ExternalId | null;
  private endStage: ((reason: Error) => void) | undefined;
  private abandoned: Error | undefined;
  /** True once the driver's part has ended; the record then belongs to the next attempt or to the ready node. */
  private hasEnded = false;

  constructor(
    private readonly context: LauncherContext,
    private readonly job: LaunchJob,
    private readonly upload: ImageUpload | undefined,
    private readonly progress: NodeProgress,
    /** True if an earlier process may have requested the instance of this attempt from the cloud. */
    private readonly interrupted: boolean,
    private readonly listener: {
      /** Called once the cloud knows the instance. */
      readonly onAccepted: () => void;
      /** Called after a failed step that the driver repeats. */
      readonly onRetry: (failure: DriverError) => void;
    },
  ) {
    this.deadline = context.clock.monotonic() + job.pool.provider.config.launchTimeoutMs;
    this.externalId = job.node.node.external_id;
  }

  get hasInstance(): boolean {
    return this.externalId !== null;
  }

  /** Resolves with the change that makes the node `ready`. */
  async run(): Promise<Partial<NodeData>> {
    const { signal, log } = this.job;
    const call = { signal, deadline: this.deadline, log };
    this.enter('creating');
    const creation = new DriverCall(this.context.clock, `the launch of node ${this.job.node.id}`, call);
    this.endStage = (reason) => creation.end(reason);
    let instance: LaunchedInstance;
    try {
      instance = checkInstance(await creation.run((bounded) => this.create(bounded.signal)));
    } finally {
      this.hasEnded = true;
    }
    this.externalId = instance.externalId;
    const { node } = this.job.node;
    if (!this.job.label.hostKeyChecking) return readyNode(node, instance, []);
    try {
      const hostKeys = await this.logIn(instance);
      const { provider } = this.job.pool;
      await driverCall(this.context.clock, 'the check of its instance', call, async (bounded) =>
        provider.checkInstance?.(instance.externalId, this.tags, bounded),
      );
      return readyNode(node, instance, hostKeys);
    } catch (error) {
      if (!signal.aborted && this.abandoned === undefined) await this.logConsole();
      throw error;
    }
  }

  /** Ends the attempt, which rejects. */
  abandon(reason: Error): void {
    this.abandoned = reason;
    this.endStage?.(reason);
  }

  /**
   * Creates a node record for the instance that this attempt leaves behind, so that the instance is deleted in any
   * case. Resolves with the record's id, or with undefined if there is no instance.
   */
  async recordLeftover(): Promise<string | undefined> {
    const externalId = this.job.node.node.external_id ?? this.externalId;
    if (externalId === null) return undefined;
    const { node } = this.job.node;
    const [id] = await this.context.store.nodes.create([leftoverNode(node, externalId, unixSeconds(this.context))]);
    return id;
  }

  /** Writes the console of the instance to the log if the label has `console-log`. */
  private async logConsole(): Promise<void> {
    const { label, pool, log, signal } = this.job;
    const { provider } = pool;
    const getConsoleLog = provider.getConsoleLog?.bind(provider);
    if (!label.consoleLog || this.externalId === null || getConsoleLog === undefined) return;
    try {
      const where = { pool: pool.config.name, label: label.name };
      const { externalId } = this;
      const { clock } = this.context;
      const call = { signal, deadline: clock.monotonic() + CONSOLE_TIMEOUT_MS, log };
      const text = await driverCall(clock, 'the reading of its console', call, (bounded) =>
        getConsoleLog(externalId, where, bounded),
      );
      if (text !== undefined) log.info('Console of an instance whose login never answered', { console: text });
    } catch (error) {
      log.warn('The console of the instance could not be read', { error });
    }
  }

  private get tags(): InstanceTags {
    const { node, pool } = this.job;
    const { provider, pool: poolName } = pool.place;
    return {
      nodepool_node_id: node.id,
      nodepool_provider_name: provider,
      nodepool_pool_name: poolName,
      nodepool_installation: this.context.store.installation.id,
      nodepool_launch_attempt: this.progress.attempt,
    };
  }

  private create(signal: AbortSignal): Promise<LaunchedInstance> {
    const { node, driverHandler, pool, label, log } = this.job;
    const { tags } = this;
    return driverHandler.launch({
      signal,
      deadline: this.deadline,
      log,
      nodeId: node.id,
      hostname: node.node.hostname ?? `np${node.id}`,
      pool: pool.config.name,
      label: label.name,
      availabilityZone: node.node.az ?? undefined,
      machineType: this.progress.machine_type,
      imageExternalId: this.upload?.external_id ?? undefined,
      tags,
      saved: this.interrupted ? INTERRUPTED_LAUNCH : this.progress.machine,
      externalId: this.externalId,
      onRetry: (error) => {
        if (!this.hasEnded) this.listener.onRetry(toDriverError(error));
      },
      save: async (progress) => {
        if (this.hasEnded) throw new AbortedError(`the launch attempt of node ${node.id} has ended`);
        if (this.externalId === null && progress.externalId !== null) this.listener.onAccepted();
        this.externalId = progress.externalId;
        await node.update({
          external_id: progress.externalId,
          progress: { ...this.progress, machine: progress.machine },
        });
      },
    });
  }

  private async logIn(instance: LaunchedInstance): Promise<readonly string[]> {
    const { pool, signal, log } = this.job;
    const login = this.login();
    const port = instance.connection?.port ?? login.port;
    const host = instance.interfaceIp;
    if (typeof port !== 'number') return [];
    if (host === undefined || host === '') {
      throw new NoAddressError('the instance has no address, so its ssh server cannot be reached');
    }
    this.enter('booting');
    const linked = linkSignals(signal);
    this.endStage = (reason) => linked.abort(reason);
    if (this.abandoned !== undefined) linked.abort(this.abandoned);
    try {
      return await this.context.scanner.scan({
        host,
        port,
        connectionType: instance.connection?.type ?? login.type,
        signal: linked.signal,
        timeoutMs: pool.provider.config.bootTimeoutMs,
        log,
        onConnected: () => this.enter('login'),
      });
    } finally {
      linked.unlink();
    }
  }

  /** Returns the login in the record. A Python launcher may not have written it yet. */
  private login(): Pick<LabelConfig['connection'], 'type' | 'port'> {
    const { connection_type: type, connection_port: port } = this.job.node.node;
    return type === null || port === null ? this.job.label.connection : { type, port };
  }

  private enter(stage: LaunchStage): void {
    this.context.timelines.stage(this.job.node.id, placeOf(this.job), stage);
  }
}

/** Throws if the driver returned something else: a node without an external id could not be deleted. */
function checkInstance(instance: LaunchedInstance): LaunchedInstance {
  const { externalId }: { readonly externalId?: unknown } = instance;
  if ((typeof externalId === 'string' && externalId !== '') || isJsonObject(externalId)) return instance;
  const message = 'the driver launched an instance without an external id; this is a defect of the driver';
  throw new DriverError('unexpected', message);
}
