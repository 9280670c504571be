/**
 * The time in which this bridge serves a scale set, from its election on: recovers what an earlier bridge has left,
 * listens to GitHub, and keeps runners, requests, nodes and registrations as they should be.
 */

import { backOffMs, isError, linkSignals, WorkQueue, type Logger, type Reconciled } from '@nodepool/core';
import { LeaseLostError } from '@nodepool/requestor';
import { runnerDataIn, type RunnerData } from '@nodepool/store/github';
import type { BridgeContext } from '../context.js';
import type { ActionsService } from '../github/actions-service.js';
import type { JobMessage, ScaleSetDocument, Statistics } from '../github/documents.js';
import { isJobRunning, isNotFound } from '../github/errors.js';
import { AGENTS_DELETED, JOB_PHASE, RUNNER_PHASE, RUNNERS_ENDED } from '../metrics.js';
import { newRunnerName, Runner, type EndReason } from '../runners/runner.js';
import type { InstallationSettings, ScaleSetSettings } from '../settings/settings.js';
import { AgentComparison } from './agents.js';
import { JobBook } from './jobs.js';
import { Listener } from './listener.js';
import { RecordWriter } from './record-writer.js';
import { RunnerController } from './runner-controller.js';
import { planScale } from './scaling.js';
import { TermReport } from './term-report.js';

/** Time that the closing of the session may take at the end (ms). */
const CLOSE_MS = 3000;
/** Time in which GitHub counts an ended job as running, unless a message tells its end (ms). */
const SETTLE_MS = 5000;
/** Runners that are started or ended at the same time. */
const CONCURRENCY = 32;
/** Time after which a runner that gets no job, although jobs wait, is replaced (ms). */
const NO_JOB_MS = 180_000;
/** Wait after a failed request before the next one. */
const REQUEST_BACK_OFF = { firstMs: 2000, longestMs: 60_000 };

export interface TermOptions {
  readonly context: BridgeContext;
  readonly installation: () => InstallationSettings;
  /** Settings of the scale set; undefined once it is removed from the settings. */
  readonly settings: () => ScaleSetSettings | undefined;
  readonly name: string;
  readonly service: ActionsService;
}

/** Name of the owner of the durable leases of a scale set. */
export function leaseOwner(installation: string, scaleSet: string): string {
  return `nodepool-github/${installation}/${scaleSet}`;
}

export class Term {
  readonly jobs: JobBook;
  readonly runners = new Map<string, Runner>();
  statistics: Statistics | undefined;
  problem: string | undefined;
  lastAnswer: number | undefined;
  private readonly log: Logger;
  private readonly listener: Listener;
  private readonly controller: RunnerController;
  private readonly queue: WorkQueue<string>;
  private readonly comparison = new AgentComparison();
  private readonly record: RecordWriter;
  private readonly report: TermReport;
  private readonly installationName: string;
  private settings: ScaleSetSettings;
  private set: ScaleSetDocument | undefined;
  private session: string | null = null;
  private reportedCapacity: { readonly jobs: number; readonly reason: string } = { jobs: 0, reason: 'starting' };
  /** Failed requests in a row, and the end of the wait after them. */
  private failures = 0;
  private notBefore = -Infinity;
  private requestProblem: string | undefined;
  /** Ended runners whose job GitHub may still count, with the time (`Clock.monotonic`) from which on it does not. */
  private readonly settling = new Map<string, number>();
  /** Aborts at the end of the term. */
  private signal: AbortSignal | undefined;

  constructor(private readonly options: TermOptions) {
    const { context, service, name } = options;
    const { clock, random, tasks } = context;
    const settings = options.settings();
    if (settings === undefined) throw new Error(`the scale set ${name} is not in the settings`);
    this.settings = settings;
    this.installationName = options.installation().name;
    this.log = context.log.with({ installation: this.installationName, scale_set: name });
    this.jobs = new JobBook(clock);
    this.record = new RecordWriter(context.zooKeeper, this.installationName, name);
    this.queue = new WorkQueue({
      ...{ clock, random, tasks, log: this.log },
      name: (key) => `${this.installationName}/${name}: ${key}`,
      concurrency: CONCURRENCY,
      backOff: { firstMs: 500, longestMs: 30_000 },
      reconcile: (key, { signal }) => this.reconcile(key, signal),
    });
    this.controller = new RunnerController({
      ...{ context: { ...context, log: this.log }, service, installation: this.installationName },
      settings: () => this.current(),
      scaleSetId: () => this.set?.id,
      owner: leaseOwner(this.installationName, name),
      enqueue: (runner, delayMs) => this.queue.add(runner.name, delayMs),
      onEnded: (runner) => this.ended(runner),
      onChange: () => this.queue.add('report'),
    });
    this.listener = new Listener({
      ...{ service, clock, random, log: this.log, owner: context.identifier },
      settings: () => this.current(),
      capacity: () => this.capacity().jobs,
      left: () => this.session,
      onSession: (set, session) => this.opened(set, session),
      onStatistics: (statistics) => this.counted(statistics),
      onJob: (job) => this.noteJob(job),
      onHealth: (problem) => this.noteHealth(problem),
    });
    this.report = new TermReport(context, this.installationName, name);
  }

  /** Serves the scale set until the signal aborts, or until nothing is left of a set that the settings do not have. */
  async run(term: AbortSignal): Promise<void> {
    const { context } = this.options;
    const linked = linkSignals(term);
    const { signal } = linked;
    this.signal = signal;
    await context.store.ready({ signal });
    const before = await this.record.read(signal);
    this.session = before?.session ?? null;
    await this.recover(signal);
    const release = context.capacity.register(this.settings.nodeLabel, this.key);
    const endings = [
      release,
      context.store.requests.onChange(({ after }) => this.requestChanged(after?.request.requestor_data)),
      context.store.requests.onChange(({ before: gone, after }) => {
        if (after === undefined) this.requestChanged(gone?.request.requestor_data);
      }),
      context.capacity.onChange(() => this.listener.capacityChanged()),
    ];
    this.log.info('Serving the scale set', { runners: this.runners.size });
    this.queue.add('scale');
    this.queue.add('compare');
    this.queue.add('report');
    try {
      const listening = this.listener.run(signal);
      const removed = this.untilRemoved(signal).then((isRemoved) => {
        if (isRemoved) linked.abort(new Error('the scale set is removed from the settings'));
      });
      await Promise.all([listening, removed]);
    } finally {
      for (const end of endings) end();
      linked.unlink();
      await this.end();
    }
  }

  /** The last capacity that was reported to GitHub. */
  get capacityInForce(): number {
    return this.reportedCapacity.jobs;
  }

  /** Applies changed settings. */
  apply(): void {
    this.queue.add('scale');
    this.changed?.();
  }

  /** Logs the work in progress. */
  dump(to: Logger): void {
    const { installationName: installation } = this;
    to.info('Scale set', { installation, scale_set: this.options.name, problem: this.problem, ...this.statistics });
    for (const { name, state, requestId, lease, waitsFor } of this.runners.values()) {
      to.info('Runner', { runner: name, state, node_request_id: requestId, node_id: lease?.nodes[0]?.id, waitsFor });
    }
  }

  private changed: (() => void) | undefined;

  private get key(): string {
    return `${this.installationName}/${this.options.name}`;
  }

  /** Returns the settings; those of a removed scale set allow no runners. */
  private current(): ScaleSetSettings {
    const settings = this.options.settings();
    if (settings !== undefined) this.settings = settings;
    return settings ?? { ...this.settings, minRunners: 0, maxRunners: 0 };
  }

  /** Resolves with true once the settings do not have the scale set and no runner is left. */
  private async untilRemoved(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if (this.options.settings() === undefined && this.runners.size === 0) return true;
      await new Promise<void>((resolve) => {
        this.changed = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    return false;
  }

  private async end(): Promise<void> {
    const { clock } = this.options.context;
    this.queue.abort(new Error('the bridge does not serve the scale set any more'));
    const left = new Error('the bridge leaves the runner to the next one');
    for (const { detach, process } of this.runners.values()) {
      detach.abort(left);
      process?.close();
    }
    await this.queue.idle();
    this.report.end();
    const limit = new AbortController();
    const timer = clock.schedule(CLOSE_MS, () => limit.abort(new Error('the session was not closed in time')));
    try {
      await this.listener.close(limit.signal);
    } catch (error) {
      this.log.info('The session stays open; the next bridge closes it', { error: messageOf(error) });
    } finally {
      timer.cancel();
    }
  }

  /** Continues with the requests and the nodes that an earlier bridge has left. */
  private async recover(signal: AbortSignal): Promise<void> {
    const { context, name } = this.options;
    const { requestor, store } = context;
    const owner = leaseOwner(this.installationName, name);
    const held = await requestor.leases(owner, { signal });
    await Promise.all(held.flatMap(({ nodes }) => nodes).map((id) => this.recoverNode(id, owner, signal)));
    for (const { request } of store.requests.all()) this.recoverRequest(request.id, request.requestor_data);
  }

  private async recoverNode(id: string, owner: string, signal: AbortSignal): Promise<void> {
    const { requestor, store } = this.options.context;
    try {
      const entry = await store.nodes.read(id, { signal });
      const lease = await requestor.adoptLease(owner, [id], { signal });
      const data = this.ownData(entry?.node.user_data);
      if (data === undefined || this.runners.has(data.runner)) {
        this.log.warn('Returning a node of the bridge whose runner is not known', { node_id: id });
        await lease.return();
        return;
      }
      const runner = this.add(data);
      runner.lease = lease;
      // Until the node answers, its process may run.
      runner.isStopped = !data.started;
      this.controller.adopted(runner);
    } catch (error) {
      // An operator has deleted the node meanwhile.
      if (!(error instanceof LeaseLostError)) throw error;
      this.log.info('A node of the bridge is lost', { node_id: id });
    }
  }

  private recoverRequest(id: string, value: unknown): void {
    const data = this.ownData(value);
    if (data === undefined || this.runners.has(data.runner)) return;
    this.add(data).requestId = id;
  }

  private add(data: RunnerData): Runner {
    const runner = new Runner(data, this.options.context.clock.monotonic());
    this.runners.set(data.runner, runner);
    this.queue.add(runner.name);
    return runner;
  }

  /** Returns the data of a runner of this scale set. */
  private ownData(value: unknown): RunnerData | undefined {
    const data = runnerDataIn((value ?? null) as Parameters<typeof runnerDataIn>[0]);
    const isOwn = data?.installation === this.installationName && data.scaleSet === this.options.name;
    return isOwn ? data : undefined;
  }

  private requestChanged(value: unknown): void {
    const data = this.ownData(value);
    if (data !== undefined && this.runners.has(data.runner)) this.queue.add(data.runner);
  }

  private async reconcile(key: string, signal: AbortSignal): Promise<Reconciled> {
    if (key === 'scale') return this.scale();
    if (key === 'compare') return await this.compare(signal);
    if (key === 'report') return await this.write(signal);
    const runner = this.runners.get(key);
    return runner === undefined ? 'done' : await this.controller.reconcile(runner, signal);
  }

  private scale(): Reconciled {
    const { clock, random } = this.options.context;
    const { minRunners: min, maxRunners: max, idleTimeoutMs } = this.current();
    // Before the first answer of GitHub nothing is known, and nothing may be removed.
    if (this.statistics === undefined && this.options.settings() !== undefined) return 'done';
    const now = clock.monotonic();
    const runners = [...this.runners.values()];
    const settledAt = this.settledAt(now);
    const assigned = Math.max(0, (this.statistics?.assigned ?? 0) - this.settling.size);
    const plan = planScale({ assigned, min, max, runners, idleTimeoutMs, now });
    const pauseMs = this.notBefore - now;
    if (plan.create > 0 && pauseMs > 0) return { requeueAfterMs: pauseMs };
    for (let count = 0; count < plan.create; count++) {
      const runner = newRunnerName(this.options.name, random.uuidHex());
      const job = this.jobs.requestFor(runner);
      const { installationName: installation } = this;
      this.add({ installation, scaleSet: this.options.name, runner, job, agent: null, started: false });
    }
    for (const name of [...plan.cancel, ...plan.remove]) this.endRunner(name, 'not-needed');
    if (plan.create > 0) this.queue.add('report');
    const againMs = Math.min(plan.againMs ?? Infinity, settledAt - now);
    return againMs === Infinity ? 'done' : { requeueAfterMs: againMs };
  }

  /** Drops runners that GitHub does not count any more. Returns the time at which the next one is dropped. */
  private settledAt(now: number): number {
    for (const [name, until] of this.settling) if (until <= now) this.settling.delete(name);
    return Math.min(Infinity, ...this.settling.values());
  }

  /** Drops runners that died in their job and that GitHub does not know any more. */
  private settle(agents: ReadonlySet<string>): void {
    for (const [name, until] of this.settling) {
      if (until !== Infinity || agents.has(name)) continue;
      this.settling.delete(name);
      this.queue.add('scale');
    }
  }

  private endRunner(name: string, reason: EndReason, detail = ''): void {
    this.runners.get(name)?.end(reason, detail);
    this.queue.add(name);
  }

  private ended(runner: Runner): void {
    const { context, name } = this.options;
    const { reason = 'left', detail = '' } = runner.ending ?? {};
    this.runners.delete(runner.name);
    if (!runner.isDone && (reason === 'job-done' || runner.isBusy)) {
      // The job of a runner that died runs for GitHub until it misses the runner, whose registration ends then.
      const until = reason === 'job-done' ? context.clock.monotonic() + SETTLE_MS : Infinity;
      this.settling.set(runner.name, until);
    }
    context.metrics.count(RUNNERS_ENDED, { installation: this.installationName, scale_set: name, reason });
    const fields = { runner: runner.name, reason, node_id: runner.lease?.nodes[0]?.id, detail };
    if (reason === 'job-done' || reason === 'not-needed') this.log.info('A runner has ended', fields);
    else this.log.warn('A runner has ended early', fields);
    if (reason === 'request-failed' || reason === 'node-unusable') {
      this.failures += 1;
      this.notBefore =
        context.clock.monotonic() + backOffMs(this.failures, undefined, context.random, REQUEST_BACK_OFF);
      this.requestProblem = detail;
    } else if (runner.lease !== undefined) {
      this.failures = 0;
      this.requestProblem = undefined;
    }
    this.queue.add('scale');
    this.queue.add('report');
    this.changed?.();
  }

  private async opened(set: ScaleSetDocument, session: string): Promise<void> {
    this.set = set;
    this.session = session;
    this.comparison.reset();
    if (this.signal !== undefined) await this.record.write(this.recordNow(), this.signal);
    for (const { name, lease } of this.runners.values()) if (lease !== undefined) this.queue.add(name);
  }

  private counted(statistics: Statistics): void {
    this.statistics = statistics;
    this.queue.add('scale');
    this.queue.add('report');
  }

  private noteHealth(problem: string | undefined): void {
    if (problem === undefined) this.lastAnswer = this.options.context.clock.now();
    if (this.problem === problem) return;
    this.problem = problem;
    this.queue.add('report');
  }

  private noteJob(message: JobMessage): void {
    const { context, name } = this.options;
    const { clock, metrics } = context;
    const tracked = this.jobs.note(message);
    const runner = this.runners.get(message.runner);
    if (message.kind === 'completed') this.settling.delete(message.runner);
    if (message.kind === 'started' && runner !== undefined && !runner.isBusy) {
      runner.isBusy = true;
      if (tracked !== undefined) runner.data = { ...runner.data, job: tracked.job };
      if (runner.onlineAt !== undefined) {
        const labels = { installation: this.installationName, scale_set: name, phase: 'idle' };
        metrics.observe(RUNNER_PHASE, labels, clock.monotonic() - runner.onlineAt);
      }
    }
    if (message.kind === 'completed' && runner !== undefined && !runner.isDone) {
      runner.isDone = true;
      runner.jobResult = message.result;
      runner.doneAt = clock.monotonic();
      this.queue.add(runner.name);
    }
    if (tracked === undefined) return;
    const labels = { installation: this.installationName, scale_set: name, repository: tracked.job.repository };
    const observe = (phase: string, ms: number): void => metrics.observe(JOB_PHASE, { ...labels, phase }, ms);
    const { queuedAt, assignedAt, noticedAt, startedAt, kind } = tracked;
    if (kind === 'started') {
      // Both times are of GitHub's clock.
      if (queuedAt !== undefined && assignedAt !== undefined) observe('queued', Math.max(0, assignedAt - queuedAt));
      if (noticedAt !== undefined) observe('waiting', clock.monotonic() - noticedAt);
    } else if (kind === 'completed' && startedAt !== undefined) observe('running', clock.monotonic() - startedAt);
    this.queue.add('report');
  }

  /** Compares statistics, registrations and nodes with GitHub, independently of its messages. */
  private async compare(signal: AbortSignal): Promise<Reconciled> {
    const { service, context } = this.options;
    const { compareMs } = context;
    const again = { requeueAfterMs: compareMs };
    const { scaleSet } = this.listener;
    // Without its session, another program may serve the scale set and its runners.
    if (scaleSet === undefined) return { requeueAfterMs: compareMs / 10 };
    this.recoverMissed();
    for (const { name, state } of this.runners.values()) if (state === 'requested') this.queue.add(name);
    const startedAt = context.clock.monotonic();
    const agents = await service.agents(signal);
    // Read after the listing: a registration that it does not have had no job any more then.
    const { statistics } = await service.scaleSet(scaleSet.id, signal);
    if (statistics !== undefined) this.counted(statistics);
    if ((statistics?.available ?? 0) > 0) await this.acquireOffered(scaleSet.id, signal);
    this.replaceIdle();
    this.settle(new Set(agents.map(({ name }) => name)));
    const runners = [...this.runners.values()].map(({ name, data, registeredAt = -Infinity }) => ({
      ...{ name, agent: data.agent, isRegistered: data.agent !== null && registeredAt < startedAt },
    }));
    const { orphans, gone } = this.comparison.compare(agents, runners, { id: scaleSet.id, name: this.options.name });
    for (const name of gone) {
      const runner = this.runners.get(name);
      // The process of a runner that has done its job is about to end.
      if (runner !== undefined && !runner.isDone) {
        runner.isDone = true;
        runner.doneAt = startedAt;
        this.queue.add(name);
      }
    }
    for (const { id, name } of orphans) await this.deleteOrphan(id, name, signal);
    return again;
  }

  private async deleteOrphan(id: number, name: string, signal: AbortSignal): Promise<void> {
    const { service, context } = this.options;
    if (this.runners.has(name) || this.isRecorded(name) || this.listener.scaleSet === undefined) return;
    try {
      await service.deleteAgent(id, signal);
      this.log.info('Deleted a registration without a runner', { runner: name, agent: id });
      context.metrics.count(AGENTS_DELETED, { installation: this.installationName, scale_set: this.options.name });
    } catch (error) {
      // GitHub ends a job whose runner is silent, and then its registration.
      if (!isJobRunning(error) && !isNotFound(error)) throw error;
    }
  }

  /** Returns true if a request or a node names the runner. */
  private isRecorded(name: string): boolean {
    const { requests, nodes } = this.options.context.store;
    for (const { request } of requests.all()) if (this.ownData(request.requestor_data)?.runner === name) return true;
    for (const { node } of nodes.all()) {
      if (node.state === 'in-use' && this.ownData(node.user_data)?.runner === name) return true;
    }
    return false;
  }

  /** Adds requests that the cache did not have yet when the term began. */
  private recoverMissed(): void {
    const { store } = this.options.context;
    for (const { request } of store.requests.all()) this.recoverRequest(request.id, request.requestor_data);
  }

  private async acquireOffered(id: number, signal: AbortSignal): Promise<void> {
    try {
      await this.listener.acquire(await this.options.service.offeredJobs(id, signal), signal);
    } catch (error) {
      // Services that assign jobs themselves need not know the call.
      if (!isNotFound(error)) throw error;
    }
  }

  /** Replaces runners that get no job although jobs wait; GitHub refuses if one has a job. */
  private replaceIdle(): void {
    const { assigned = 0, running = 0 } = this.statistics ?? {};
    if (assigned <= running) return;
    const now = this.options.context.clock.monotonic();
    for (const { name, state, onlineAt = now } of this.runners.values()) {
      if (state === 'online' && now - onlineAt >= NO_JOB_MS) this.endRunner(name, 'takes-no-job');
    }
  }

  /** Returns the number of jobs that can be served: those that have a node or get one, and what launchers have left. */
  private capacity(): { readonly jobs: number; readonly reason: string } {
    const { context } = this.options;
    const { maxRunners, nodeLabel } = this.current();
    const served = [...this.runners.values()].filter(({ state, lease, requestId }) => {
      if (state === 'ending') return false;
      return lease !== undefined || context.store.requests.get(requestId ?? '')?.request.state === 'pending';
    }).length;
    const { nodes, reason } = context.capacity.of(nodeLabel, this.key);
    const isPaused = this.notBefore > context.clock.monotonic();
    const free = isPaused ? 0 : nodes;
    const why = isPaused ? `node requests fail: ${this.requestProblem ?? ''}` : reason;
    const jobs = Math.min(maxRunners, served + free);
    this.reportedCapacity = { jobs, reason: jobs === maxRunners ? `max-runners is ${maxRunners}` : why };
    return this.reportedCapacity;
  }

  private async write(signal: AbortSignal): Promise<Reconciled> {
    this.report.update(this);
    await this.record.write(this.recordNow(), signal);
    return { pauseMs: 1000 };
  }

  private recordNow(): Parameters<RecordWriter['write']>[0] {
    const { context, name } = this.options;
    const {
      available: jobsAvailable = 0,
      assigned: jobsAssigned = 0,
      running: jobsRunning = 0,
    } = this.statistics ?? {};
    const { jobs: capacity, reason: capacityReason } = this.capacity();
    return {
      ...{ installation: this.installationName, scaleSet: name, url: this.options.installation().scope.url },
      ...{ nodeLabel: this.settings.nodeLabel, bridge: context.identifier },
      ...{ id: this.set?.id ?? null, session: this.session, capacity, capacityReason },
      ...{ jobsAvailable, jobsAssigned, jobsRunning },
      runners: this.report.counts(this.runners.values()),
      problem: this.problem ?? this.requestProblem ?? null,
      written: context.clock.now() / 1000,
      jobs: this.jobs.shown(),
    };
  }
}

function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}
