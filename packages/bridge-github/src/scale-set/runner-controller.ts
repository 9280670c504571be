/**
 * Brings one runner to its next step: request, node, registration, start, end. Each step is repeatable, so that another
 * bridge continues wherever one was killed.
 */

import { Latch, isError, linkSignals, sleep, untilAborted, type Reconciled } from '@nodepool/core';
import {
  LeaseLostError,
  NodeNotReadyError,
  RequestFailedError,
  RequestRemovedError,
  type Interruption,
} from '@nodepool/requestor';
import { SshError } from '@nodepool/daemon/ssh';
import { runnerDataValue, type RunnerData } from '@nodepool/store/github';
import type { BridgeContext } from '../context.js';
import type { ActionsService, JitConfig } from '../github/actions-service.js';
import { isConflict, isJobRunning } from '../github/errors.js';
import type { RunnerProcess, RunnerEnd } from '../runners/runner-process.js';
import { ASKED, type Runner } from '../runners/runner.js';
import type { ScaleSetSettings } from '../settings/settings.js';

/** Time limit for ZooKeeper to lock the nodes of a fulfilled request (ms). */
const LOCK_TIMEOUT_MS = 60_000;
/** Time after which GitHub decides about a runner whose node cannot be reached (ms). */
const UNREACHABLE_MS = 300_000;
/** Delay between attempts to reach a node (ms), doubled up to the longest. */
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;
/** Time that a runner has to end by itself after GitHub has reported the end of its job (ms). */
const DONE_GRACE_MS = 120_000;

/** Time for which an ended runner keeps its node until GitHub reports the result of the job (ms). */
const RESULT_WAIT_MS = 5000;

export interface RunnerControllerOptions {
  readonly context: BridgeContext;
  readonly service: ActionsService;
  readonly settings: () => ScaleSetSettings;
  /** Id of the scale set in GitHub; undefined until it is known. */
  readonly scaleSetId: () => number | undefined;
  /** Owner of the durable leases. */
  readonly owner: string;
  /** Reconciles the runner, after `delayMs`. */
  readonly enqueue: (runner: Runner, delayMs?: number) => void;
  /** Called when a runner has ended and nothing of it is left but perhaps its registration. */
  readonly onEnded: (runner: Runner) => void;
  /** Called when a runner has connected to GitHub. */
  readonly onOnline: (runner: Runner) => void;
  /** Called with the duration of a phase. */
  readonly observe: (phase: 'node' | 'register' | 'start', runner: Runner, ms: number) => void;
  /** Called when the state of a runner has changed. */
  readonly onChange: () => void;
}

export class RunnerController {
  constructor(private readonly options: RunnerControllerOptions) {}

  async reconcile(runner: Runner, signal: AbortSignal): Promise<Reconciled> {
    if (runner.ending === undefined) this.checkTimes(runner);
    if (runner.ending !== undefined) return await this.finish(runner, signal);
    if (runner.lease === undefined) return await this.obtainNode(runner, signal);
    return await this.runOnNode(runner, signal);
  }

  /** Continues with the node of a runner that an earlier bridge has left. */
  adopted(runner: Runner): void {
    const { lease } = runner;
    if (lease === undefined) return;
    runner.leasedAt = this.now();
    const lose = (): void => this.end(runner, 'lease-lost', messageOf(lease.lost.reason));
    if (lease.lost.aborted) lose();
    else lease.lost.addEventListener('abort', lose, { once: true });
    lease.onInterruption((interruption) => this.interrupted(runner, interruption));
  }

  private now(): number {
    return this.options.context.clock.monotonic();
  }

  private end(runner: Runner, ...reason: Parameters<Runner['end']>): void {
    runner.end(...reason);
    this.options.enqueue(runner);
  }

  private interrupted(runner: Runner, { kind, reason, endsAt }: Interruption): void {
    const leftMs = kind === 'reclaimed' && endsAt !== undefined ? endsAt - this.options.context.clock.now() : 0;
    // The job may end before the cloud takes the instance away.
    if (leftMs <= 0) this.end(runner, 'node-lost', reason);
    else this.options.enqueue(runner, leftMs);
  }

  private checkTimes(runner: Runner): void {
    const now = this.now();
    const { startTimeoutMs } = this.options.settings();
    const { leasedAt = now, doneAt = now } = runner;
    if (runner.lease !== undefined && !runner.isOnline && !runner.isBusy && now - leasedAt >= startTimeoutMs) {
      runner.end('never-connected', `not connected to GitHub within ${startTimeoutMs / 1000} s`);
    }
    if (runner.isDone && now - doneAt >= DONE_GRACE_MS) {
      runner.end('left', 'its job has ended, but its process has not');
    }
  }

  private async obtainNode(runner: Runner, signal: AbortSignal): Promise<Reconciled> {
    const { context, settings, owner } = this.options;
    const { requestor, store } = context;
    if (runner.requestId === undefined) {
      const { nodeLabel, priority, tenant } = settings();
      const request = await requestor.request(
        {
          ...{ labels: [nodeLabel], priority, durable: true, data: runnerDataValue(runner.data) },
          ...(tenant === undefined ? {} : { tenant }),
        },
        { signal },
      );
      runner.requestId = request.id;
      this.options.onChange();
      // The cache may not have the request yet; each change of it comes back here.
      return 'done';
    }
    const known = store.requests.get(runner.requestId)?.request;
    if (known?.state === 'requested' || known?.state === 'pending') return 'done';
    try {
      const taking = requestor.resume(runner.requestId).take({
        ...{ durable: owner, userData: runnerDataValue(runner.data), signal },
        timeoutMs: LOCK_TIMEOUT_MS,
      });
      runner.lease = await taking;
    } catch (error) {
      return this.notObtained(runner, error);
    }
    this.adopted(runner);
    this.options.observe('node', runner, this.now() - runner.createdAt);
    this.options.onChange();
    return await this.reconcile(runner, signal);
  }

  private async notObtained(runner: Runner, error: unknown): Promise<Reconciled> {
    // The cache may lag behind: a request that is not there yet is looked at again after its next change.
    if (error instanceof RequestFailedError) runner.end('request-failed', error.reasons.join('; '));
    else if (error instanceof RequestRemovedError) runner.end('request-removed', error.message);
    else if (error instanceof NodeNotReadyError || error instanceof LeaseLostError) {
      runner.end('request-removed', error.message);
    } else throw error;
    return await Promise.resolve({ requeueAfterMs: 0 });
  }

  private async runOnNode(runner: Runner, signal: AbortSignal): Promise<Reconciled> {
    if (runner.isAttached) return this.waitFurther(runner);
    const process = this.processOf(runner);
    if (process === undefined) return { requeueAfterMs: 0 };
    if (runner.data.started) this.attach(runner, process);
    else if (!(await this.start(runner, process, signal))) return { requeueAfterMs: FIRST_RETRY_MS };
    return this.waitFurther(runner);
  }

  /** Looks at the runner again when one of its times is over. */
  private waitFurther(runner: Runner): Reconciled {
    const { startTimeoutMs } = this.options.settings();
    const now = this.now();
    if (runner.isDone) return { requeueAfterMs: Math.max(0, (runner.doneAt ?? now) + DONE_GRACE_MS - now) };
    if (runner.isOnline || runner.isBusy) return 'done';
    return { requeueAfterMs: Math.max(0, (runner.leasedAt ?? now) + startTimeoutMs - now) };
  }

  private processOf(runner: Runner): RunnerProcess | undefined {
    const { context, settings } = this.options;
    const { user, identity } = settings();
    const [node] = runner.lease?.nodes ?? [];
    if (node === undefined) return undefined;
    try {
      runner.process ??= context.processes.on(node, { user, identity });
      return runner.process;
    } catch (error) {
      if (!(error instanceof SshError)) throw error;
      runner.end('node-unusable', error.message);
      return undefined;
    }
  }

  /** Registers and starts the runner. Resolves with false if the scale set is not known yet. */
  private async start(runner: Runner, process: RunnerProcess, signal: AbortSignal): Promise<boolean> {
    const { settings, scaleSetId } = this.options;
    const id = scaleSetId();
    const { lease } = runner;
    if (id === undefined || lease === undefined) return false;
    const startedAt = this.now();
    const { encoded, agent } = await this.register(id, runner.name, signal);
    runner.registeredAt = this.now();
    this.options.observe('register', runner, runner.registeredAt - startedAt);
    const data: RunnerData = { ...runner.data, agent: agent.id, started: true };
    // From here on the node has perhaps run a job, and is never used for another runner.
    await lease.use({ userData: runnerDataValue(data), signal });
    runner.data = data;
    runner.isStopped = false;
    const { runnerFolder: folder, environment } = settings();
    this.attach(runner, process, { folder, environment, secret: encoded });
    return true;
  }

  /** Registers the runner. A registration of its name is that of a bridge that was killed before it had the secret. */
  private async register(id: number, name: string, signal: AbortSignal): Promise<JitConfig> {
    const { service, settings } = this.options;
    const { workFolder } = settings();
    try {
      return await service.generateJitConfig(id, name, workFolder, signal);
    } catch (error) {
      const left = isConflict(error) ? await service.agentNamed(name, signal) : undefined;
      if (left === undefined || left.scaleSetId !== id) throw error;
      await service.deleteAgent(left.id, signal);
      return await service.generateJitConfig(id, name, workFolder, signal);
    }
  }

  /** Waits for the end of the process, in the background. With `start`, the process is started first. */
  private attach(
    runner: Runner,
    process: RunnerProcess,
    start?: {
      readonly folder: string;
      readonly environment: Readonly<Record<string, string>>;
      readonly secret: string;
    },
  ): void {
    const { context } = this.options;
    runner.isAttached = true;
    const { signal } = runner.detach;
    const seen = new Latch(false);
    const events = {
      onStarted: () => {
        runner.unreachableSince = undefined;
        runner.isStopped = false;
        seen.open();
      },
      onOnline: () => this.online(runner),
    };
    const first = (): Promise<RunnerEnd> => {
      if (start === undefined || seen.isOpen) return process.attach(runner.name, events, signal);
      return process.start({ runner: runner.name, ...start }, start.secret, events, signal);
    };
    const work = async (): Promise<void> => {
      try {
        await this.follow(runner, first, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        runner.isAttached = false;
      }
    };
    context.tasks.run(`runner ${runner.name}`, work, { runner: runner.name, node_id: runner.lease?.nodes[0]?.id });
  }

  /** Repeats the ssh session until the state of the runner is known. */
  private async follow(runner: Runner, session: () => Promise<RunnerEnd>, signal: AbortSignal): Promise<void> {
    const { context } = this.options;
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_RETRY_MS)) {
      const end = await session();
      signal.throwIfAborted();
      if (end.kind !== 'unreachable') {
        runner.isStopped = true;
        this.processEnded(runner, end);
        return;
      }
      runner.waitsFor = `node ${runner.lease?.nodes[0]?.id ?? ''} cannot be reached: ${end.reason}`;
      const now = this.now();
      runner.unreachableSince ??= now;
      context.log.debug('A runner cannot be reached; retrying', { runner: runner.name, reason: end.reason });
      if (now - runner.unreachableSince >= UNREACHABLE_MS) {
        this.end(runner, 'unreachable', end.reason);
        // GitHub may know that the job runs, and then the runner is still wanted.
        runner.unreachableSince = now;
      }
      await sleep(context.clock, waitMs, signal);
    }
  }

  private online(runner: Runner): void {
    if (runner.isOnline) return;
    const now = this.now();
    runner.isOnline = true;
    runner.onlineAt = now;
    runner.unreachableSince = undefined;
    runner.waitsFor = undefined;
    this.options.onOnline(runner);
    if (runner.registeredAt !== undefined) this.options.observe('start', runner, now - runner.registeredAt);
    this.options.onChange();
  }

  private processEnded(runner: Runner, end: Exclude<RunnerEnd, { kind: 'unreachable' }>): void {
    if (end.kind === 'ended') runner.exitStatus = end.status;
    if (end.kind === 'ended' && (runner.isBusy || runner.isDone)) this.end(runner, 'job-done');
    else if (end.kind === 'ended') {
      // The message about its job may be lost or late; a runner that was online has usually run one.
      const detail = `exit status ${end.status}${end.log === '' ? '' : `: ${end.log.split('\n').at(-1) ?? ''}`}`;
      this.end(runner, runner.isOnline && end.status === 0 ? 'job-done' : 'ended-without-job', detail);
    } else if (end.kind === 'lost') this.end(runner, 'killed', 'its process was killed, or its node has restarted');
    else this.end(runner, 'left', 'it ended while no bridge was connected to its node');
  }

  private async finish(runner: Runner, signal: AbortSignal): Promise<Reconciled> {
    const { context, onEnded } = this.options;
    const { ending } = runner;
    if (ending === undefined) return 'done';
    if (this.awaitsResult(runner)) return { requeueAfterMs: RESULT_WAIT_MS };
    if (!(await this.deregister(runner, signal))) return 'done';
    runner.detach.abort(new Error('the runner has ended'));
    if (runner.process !== undefined && !runner.isStopped && ending.reason !== 'node-lost') {
      await untilAborted(runner.process.stop(runner.name), signal);
    }
    const { lease, result } = runner;
    if (lease !== undefined) await lease.return(result === undefined ? {} : { result });
    else if (runner.requestId !== undefined) await context.requestor.resume(runner.requestId).cancel();
    runner.process?.close();
    onEnded(runner);
    return 'done';
  }

  /** Returns true while the message with the result of the job may still arrive: the process often ends before it. */
  private awaitsResult(runner: Runner): boolean {
    if (runner.ending?.reason !== 'job-done' || runner.exitStatus !== 0) return false;
    if (!runner.isBusy || runner.isDone) return false;
    runner.awaitsResultSince ??= this.now();
    return this.now() - runner.awaitsResultSince < RESULT_WAIT_MS;
  }

  /**
   * Deletes the registration of a runner that has not ended by itself. Resolves with false if GitHub says that its job
   * runs, and the runner is then kept. The comparison of the registrations deletes later what cannot be deleted now.
   */
  private async deregister(runner: Runner, signal: AbortSignal): Promise<boolean> {
    const { context, service } = this.options;
    const { agent } = runner.data;
    const { reason } = runner.ending ?? {};
    if (agent === null || reason === 'job-done') return true;
    const isAsked = reason !== undefined && ASKED.has(reason);
    const limited = linkSignals(signal);
    try {
      await service.deleteAgent(agent, limited.signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      // The message about its job was lost or is late.
      if (isJobRunning(error)) runner.isBusy = true;
      if (isAsked && isJobRunning(error)) {
        runner.ending = undefined;
        this.options.onChange();
        return false;
      }
      // Only GitHub knows whether a runner that nothing needs has a job by now.
      if (isAsked) throw error;
      context.log.info('A registration cannot be deleted yet', { runner: runner.name, error: messageOf(error) });
      return true;
    } finally {
      limited.unlink();
    }
  }
}

function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}
