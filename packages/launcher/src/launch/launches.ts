/**
 * One launch: makes an instance for a node that we hold, through the provider's handler, as often as `launch-retries`
 * allows, and waits until one can log in. Every attempt has an identity that is recorded before the cloud is asked.
 */

import {
  AbortedError,
  DriverError,
  ERROR_POLICIES,
  INTERRUPTED_LAUNCH,
  InstanceFailedError,
  sleep,
  toDriverError,
  type ExternalId,
  type ImageUpload,
  type InstanceTags,
  type LabelConfig,
  type LaunchErrorResult,
  type LaunchedInstance,
  type Logger,
  type NodeData,
  type NodeProgress,
  type NodeRequestHandler,
  type PoolConfig,
  type Provider,
} from '@nodepool/core';
import { LostOwnershipError, type NodeHandle } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { type LauncherContext, unixSeconds } from '../context.js';
import { driverCall } from '../provider/driver-call.js';
import { LaunchRetries } from './launch-retries.js';
import { replacementFor } from './missing-image.js';
import { imageIdOf, readyNode, remnantNode } from './node-record.js';
import { FAILED_ATTEMPTS, LAUNCHES } from '../diagnostics/launcher-metrics.js';
import type { Lack } from '../quota/quota-scope.js';
import { untilRetryFits } from '../scheduling/retry-room.js';

/** How long the console of an instance may take, milliseconds: it only helps people. */
const CONSOLE_TIMEOUT_MS = 60_000;

/** What a launch works on. */
export interface LaunchJob {
  readonly node: NodeHandle;
  readonly provider: Provider;
  readonly handler: NodeRequestHandler;
  readonly pool: PoolConfig;
  readonly label: LabelConfig;
  readonly upload: ImageUpload | undefined;
  /** Who asked for the node. */
  readonly requestor: string | null;
  /** An earlier process may have begun this attempt. */
  readonly resumed: boolean;
  /** Aborts when nobody wants the node any more, or when we may not work on it any more. */
  readonly signal: AbortSignal;
  /** Returns the limit that another instance of the node would exceed, given all records up to this id. */
  readonly retryLack: (lastId: string) => Promise<Lack | undefined>;
  readonly log: Logger;
  /** True if another pool can serve the request while the cloud of this one fails. */
  canMoveOn(): boolean;
  /** Called at the end of each attempt, with the failure if it failed. */
  onAttempt(failure: DriverError | undefined): void;
}

/** The first attempt's identity, to be recorded before `launch`. */
export function firstAttempt(context: LauncherContext): NodeProgress {
  return {
    kind: 'launch',
    attempt: context.random.uuidHex(),
    number: 1,
    started: unixSeconds(context),
    machine: null,
  };
}

/**
 * Resolves with the change that makes the node `ready` (not written yet: it goes into the hand-out's transaction).
 * Rejects with the `DriverError` of the last attempt; what the cloud still has of it is for the node's deletion.
 * The record must hold the attempt (`progress`) already.
 */
export async function launch(context: LauncherContext, job: LaunchJob): Promise<Partial<NodeData>> {
  const startedAt = context.clock.monotonic();
  const report: ReportResult = (result, az) => observeLaunch(context, job, startedAt, result, az);
  try {
    const change = await launchWithRetries(context, job, report);
    report('ready', change.az);
    return change;
  } catch (error) {
    if (error instanceof LostOwnershipError || isZooKeeperError(error)) report('error.zksession');
    throw error;
  }
}

/** Reports that the node is ready, or that an attempt failed. */
type ReportResult = (result: 'ready' | LaunchErrorResult, az?: string | null) => void;

function observeLaunch(
  context: LauncherContext,
  job: LaunchJob,
  startedAt: number,
  result: string,
  az: string | null | undefined,
): void {
  const labels = {
    provider: job.provider.config.name,
    az: az ?? job.node.node.az ?? '',
    requestor: job.requestor ?? '',
    result,
  };
  context.metrics.observe(LAUNCHES, labels, context.clock.monotonic() - startedAt);
}

/** The instance came up without an address. */
class NoAddressError extends InstanceFailedError {}

/** Records a failed attempt in the log, the metrics, and the decisions that `explain` shows. */
function attemptFailed(
  context: LauncherContext,
  job: LaunchJob,
  progress: NodeProgress,
  failure: DriverError,
  report: ReportResult,
): void {
  const policy = ERROR_POLICIES[failure.code];
  job.log[policy.log === 'error' ? 'warn' : policy.log]('Launch attempt failed', {
    attempt: progress.number,
    code: failure.code,
    error: failure,
  });
  const { name: provider } = job.provider.config;
  const where = { provider, pool: job.pool.name, label: job.label.name };
  context.metrics.count(FAILED_ATTEMPTS, { ...where, reason: failure.code });
  const result = failure instanceof NoAddressError ? 'error.network' : policy.metric;
  if (result !== undefined) report(result);
  const by = `${provider}/${job.pool.name}`;
  context.decisions.record('node', job.node.id, by, `launch attempt ${progress.number} failed`, failure.message);
  if (failure.code !== 'aborted')
    context.decisions.record('label', where.label, by, 'a launch failed', failure.message);
}

async function launchWithRetries(
  context: LauncherContext,
  job: LaunchJob,
  report: ReportResult,
): Promise<Partial<NodeData>> {
  let interrupted = mayHaveBegun(job);
  const retries = new LaunchRetries(context, job);
  let { upload } = job;
  for (;;) {
    let attempt: Attempt | undefined;
    try {
      attempt = new Attempt(context, { ...job, upload }, recordedProgress(job), interrupted);
      const change = await attempt.run();
      job.onAttempt(undefined);
      return change;
    } catch (error) {
      // The record is not ours to write any more, or cannot be written: then neither is the instance ours to give up.
      if (error instanceof LostOwnershipError || isZooKeeperError(error)) throw error;
      const failure = job.signal.aborted ? aborted(job) : toDriverError(error);
      const policy = ERROR_POLICIES[failure.code];
      const progress = recordedProgress(job);
      if (interrupted && failure.outcome === 'not-applied' && failure.code === 'transient') {
        interrupted = false;
        job.log.info('An interrupted launch had not made anything; it begins anew', { reason: failure.message });
        await job.node.update({ progress: { ...progress, attempt: context.random.uuidHex() } });
        // The process before may have left an instance.
        await untilRetryFits(context, job, job.node.id);
        continue;
      }
      interrupted = false;
      attemptFailed(context, job, progress, failure, report);
      const replacement = await replacementFor(context, job, upload, failure);
      if (replacement === undefined) job.onAttempt(failure);
      const delayMs = replacement === undefined ? retries.next(failure, progress.number) : 0;
      if (delayMs === undefined) throw failure;
      const remnant = await attempt?.leaveRemnant();
      if (delayMs > 0) await sleep(context.clock, delayMs, job.signal);
      upload = replacement ?? upload;
      await job.node.update({
        external_id: null,
        ...(replacement === undefined ? {} : { image_id: imageIdOf(replacement) }),
        progress: {
          ...progress,
          attempt: context.random.uuidHex(),
          number: progress.number + (policy.countsAsAttempt && replacement === undefined ? 1 : 0),
          machine: null,
        },
      });
      if (remnant !== undefined) await untilRetryFits(context, job, remnant);
    }
  }
}

function recordedProgress({ node }: LaunchJob): NodeProgress {
  const { progress } = node.node;
  if (progress === null) throw new DriverError('unexpected', `node ${node.id} has no launch attempt recorded`);
  return progress;
}

/**
 * Whether an attempt of which nothing but its identity was saved may have an instance all the same: its creator died
 * before it could say so.
 */
function mayHaveBegun({ resumed, node }: LaunchJob): boolean {
  const { progress, external_id: externalId } = node.node;
  return resumed && progress?.machine === null && externalId === null;
}

function aborted(job: LaunchJob): DriverError {
  return new AbortedError(`the launch of node ${job.node.id} was given up`, { cause: job.signal.reason });
}

/** One attempt: create, then log in. */
class Attempt {
  private readonly deadline: number;
  private externalId: ExternalId | null;

  constructor(
    private readonly context: LauncherContext,
    private readonly job: LaunchJob,
    private readonly progress: NodeProgress,
    /** An earlier process may have asked the cloud for this very attempt. */
    private readonly interrupted: boolean,
  ) {
    this.deadline = context.clock.monotonic() + job.provider.config.launchTimeoutMs;
    this.externalId = job.node.node.external_id;
  }

  async run(): Promise<Partial<NodeData>> {
    const { signal, log } = this.job;
    const call = { signal, deadline: this.deadline, log };
    const instance = await driverCall(this.context.clock, `the launch of node ${this.job.node.id}`, call, (bounded) =>
      this.create(bounded.signal),
    );
    this.externalId = instance.externalId;
    if (!this.job.label.hostKeyChecking) return readyNode(instance, []);
    try {
      return readyNode(instance, await this.logIn(instance));
    } catch (error) {
      if (!this.job.signal.aborted) await this.logConsole();
      throw error;
    }
  }

  /**
   * Creates a record for the instance that this attempt leaves behind, so that it is deleted come what may. Returns its
   * id, or undefined if there is no instance.
   */
  async leaveRemnant(): Promise<string | undefined> {
    const externalId = this.job.node.node.external_id ?? this.externalId;
    if (externalId === null) return undefined;
    const { node } = this.job.node;
    const [id] = await this.context.store.nodes.create([remnantNode(node, externalId, unixSeconds(this.context))]);
    return id;
  }

  /** The instance's console goes into the log, if the label wants that. */
  private async logConsole(): Promise<void> {
    const { provider, label, pool, log, signal } = this.job;
    const getConsoleLog = provider.getConsoleLog?.bind(provider);
    if (!label.consoleLog || this.externalId === null || getConsoleLog === undefined) return;
    try {
      const where = { pool: pool.name, label: label.name };
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

  private create(signal: AbortSignal): Promise<LaunchedInstance> {
    const { node, handler, pool, label, upload, log } = this.job;
    const tags: InstanceTags = {
      nodepool_node_id: node.id,
      nodepool_provider_name: this.job.provider.config.name,
      nodepool_pool_name: pool.name,
      nodepool_installation: this.context.store.installation.id,
      nodepool_launch_attempt: this.progress.attempt,
    };
    return handler.launch({
      signal,
      deadline: this.deadline,
      log,
      nodeId: node.id,
      hostname: node.node.hostname ?? `np${node.id}`,
      pool: pool.name,
      label: label.name,
      availabilityZone: node.node.az ?? undefined,
      imageExternalId: upload?.external_id ?? undefined,
      tags,
      saved: this.interrupted ? INTERRUPTED_LAUNCH : this.progress.machine,
      externalId: this.externalId,
      save: (progress) => {
        this.externalId = progress.externalId;
        return node.update({
          external_id: progress.externalId,
          progress: { ...this.progress, machine: progress.machine },
        });
      },
    });
  }

  private async logIn(instance: LaunchedInstance): Promise<readonly string[]> {
    const { label, provider, signal, log } = this.job;
    const port = instance.connection?.port ?? label.connection.port;
    const host = instance.interfaceIp;
    if (typeof port !== 'number') return [];
    if (host === undefined || host === '') {
      throw new NoAddressError('the instance has no address, so its ssh server cannot be reached');
    }
    return this.context.scanner.scan({
      host,
      port,
      connectionType: instance.connection?.type ?? label.connection.type,
      signal,
      timeoutMs: provider.config.bootTimeoutMs,
      log,
    });
  }
}
