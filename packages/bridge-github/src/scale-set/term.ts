/**
 * The time in which this bridge serves a scale set, from its election on: recovers what an earlier bridge has left,
 * listens to GitHub, and keeps runners, requests, nodes and registrations as they should be.
 */

import { isError, linkSignals, WorkQueue, type LinkedController, type Logger, type Reconciled } from '@nodepool/core';
import type { BridgeContext } from '../context.js';
import type { ActionsService } from '../github/actions-service.js';
import type { ScaleSetDocument, Statistics } from '../github/documents.js';
import { RUNNERS_ENDED } from '../metrics.js';
import { newRunnerName, type EndReason, type Runner } from '../runners/runner.js';
import type { InstallationSettings, ScaleSetSettings } from '../settings/settings.js';
import { Comparison } from './comparison.js';
import { JobObserver } from './job-observer.js';
import { JobBook } from './jobs.js';
import { Listener } from './listener.js';
import { Phases } from './phases.js';
import { Planner } from './planner.js';
import { RecordWriter } from './record-writer.js';
import { RunnerController } from './runner-controller.js';
import { leaseOwner, RunnerSet } from './runner-set.js';
import { TermReport } from './term-report.js';

/** Time that the closing of the session may take at the end (ms). */
const CLOSE_MS = 3000;
/** Runners whose records and registrations change at the same time; each waits for several answers. */
const CONCURRENCY = 128;

export interface TermOptions {
  readonly context: BridgeContext;
  readonly installation: () => InstallationSettings;
  /** Settings of the scale set; undefined once it is removed from the settings. */
  readonly settings: () => ScaleSetSettings | undefined;
  readonly name: string;
  readonly service: ActionsService;
}

export class Term {
  readonly jobs: JobBook;
  readonly phases: Phases;
  readonly planner: Planner;
  readonly runners: RunnerSet;
  problem: string | undefined;
  lastAnswer: number | undefined;
  private readonly log: Logger;
  private readonly listener: Listener;
  private readonly controller: RunnerController;
  private readonly comparison: Comparison;
  private readonly observer: JobObserver;
  private readonly queue: WorkQueue<string>;
  private readonly record: RecordWriter;
  private readonly report: TermReport;
  private readonly installationName: string;
  private settings: ScaleSetSettings;
  private set: ScaleSetDocument | undefined;
  private session: string | null = null;
  private reportedCapacity: { readonly jobs: number; readonly reason: string } = { jobs: 0, reason: 'starting' };
  /** Aborts at the end of the term. */
  private life: LinkedController | undefined;

  constructor(private readonly options: TermOptions) {
    const { service, name } = options;
    const settings = options.settings();
    if (settings === undefined) throw new Error(`the scale set ${name} is not in the settings`);
    this.settings = settings;
    const installation = options.installation().name;
    this.installationName = installation;
    this.log = options.context.log.with({ installation, scale_set: name });
    const context = { ...options.context, log: this.log };
    const { clock, random, tasks, metrics, repositories } = context;
    const enqueue = (runner: Runner, delayMs?: number): void => this.queue.add(runner.name, delayMs);
    this.jobs = new JobBook(clock);
    this.phases = new Phases({ metrics, repositories, installation, scaleSet: name });
    this.planner = new Planner({ clock, random });
    this.record = new RecordWriter(context.zooKeeper, installation, name);
    this.report = new TermReport(context, installation, name);
    this.queue = new WorkQueue({
      ...{ clock, random, tasks, log: this.log },
      name: (key) => `${installation}/${name}: ${key}`,
      concurrency: CONCURRENCY,
      backOff: { firstMs: 500, longestMs: 30_000 },
      reconcile: (key, { signal }) => this.reconcile(key, signal),
    });
    this.controller = new RunnerController({
      ...{ context, service, enqueue },
      settings: () => this.current(),
      scaleSetId: () => this.set?.id,
      owner: leaseOwner(installation, name),
      onEnded: (runner) => this.ended(runner),
      onOnline: (runner) => this.observer.online(runner),
      onChange: () => this.queue.add('report'),
      observe: (phase, runner, ms) => this.phases.observe(phase, runner.data.job, ms),
    });
    this.runners = new RunnerSet({
      ...{ context, installation, scaleSet: name },
      onAdded: enqueue,
      onAdopted: (runner) => this.controller.adopted(runner),
    });
    this.observer = new JobObserver({
      ...{ clock, jobs: this.jobs, phases: this.phases, enqueue },
      runner: (of) => this.runners.get(of),
      onCompleted: (runner) => this.planner.settling.delete(runner),
      onChange: () => this.queue.add('report'),
    });
    this.listener = new Listener({
      ...{ service, clock, random, log: this.log, owner: context.identifier },
      settings: () => this.current(),
      capacity: () => this.capacity().jobs,
      left: () => this.session,
      onSession: (set, session) => this.opened(set, session),
      onStatistics: (statistics) => this.counted(statistics),
      onJob: (job) => this.observer.note(job),
      onHealth: (problem) => this.noteHealth(problem),
    });
    this.comparison = new Comparison({
      ...{ context, installation, scaleSet: name, service, enqueue },
      ...{ listener: this.listener, runners: this.runners },
      onStatistics: (statistics) => this.counted(statistics),
      onListed: (names) => this.listed(names),
    });
  }

  /** Serves the scale set until the signal aborts, or until nothing is left of a set that the settings do not have. */
  async run(term: AbortSignal): Promise<void> {
    const { context } = this.options;
    const linked = linkSignals(term);
    const { signal } = linked;
    this.life = linked;
    await context.store.ready({ signal });
    const before = await this.record.read(signal);
    this.session = before?.session ?? null;
    await this.runners.recover(signal);
    const endings = [
      context.capacity.register(this.key, () => ({ label: this.settings.nodeLabel, tenant: this.settings.tenant })),
      context.store.requests.onChange(({ before: gone, after }) =>
        this.requestChanged((after ?? gone)?.request.requestor_data ?? null),
      ),
      context.capacity.onChange(() => this.listener.capacityChanged()),
    ];
    this.log.info('Serving the scale set', { runners: this.runners.size });
    for (const key of ['scale', 'compare', 'report']) this.queue.add(key);
    this.endIfRemoved();
    try {
      await this.listener.run(signal);
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
    this.endIfRemoved();
  }

  /** Logs the work in progress. */
  dump(to: Logger): void {
    const { installationName: installation, problem } = this;
    to.info('Scale set', { installation, scale_set: this.options.name, problem, ...this.planner.statistics });
    for (const { name, state, requestId, lease, waitsFor } of this.runners.values()) {
      to.info('Runner', { runner: name, state, node_request_id: requestId, node_id: lease?.nodes[0]?.id, waitsFor });
    }
  }

  private get key(): string {
    return `${this.installationName}/${this.options.name}`;
  }

  /** Returns the settings; those of a removed scale set allow no runners. */
  private current(): ScaleSetSettings {
    const settings = this.options.settings();
    if (settings !== undefined) this.settings = settings;
    return settings ?? { ...this.settings, minRunners: 0, maxRunners: 0 };
  }

  /** Ends the term once the settings do not have the scale set and no runner is left. */
  private endIfRemoved(): void {
    if (this.options.settings() !== undefined || this.runners.size > 0) return;
    this.life?.abort(new Error('the scale set is removed from the settings'));
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

  private requestChanged(value: Parameters<RunnerSet['nameIn']>[0]): void {
    const name = this.runners.nameIn(value);
    if (name !== undefined && this.runners.get(name) !== undefined) this.queue.add(name);
  }

  private async reconcile(key: string, signal: AbortSignal): Promise<Reconciled> {
    if (key === 'scale') return this.scale();
    if (key === 'compare') return await this.comparison.compare(signal);
    if (key === 'report') return await this.write(signal);
    const runner = this.runners.get(key);
    return runner === undefined ? 'done' : await this.controller.reconcile(runner, signal);
  }

  private scale(): Reconciled {
    // Before the first answer of GitHub nothing is known, and nothing may be removed.
    if (this.planner.statistics === undefined && this.options.settings() !== undefined) return 'done';
    const { create, cancel, remove, againMs } = this.planner.plan(this.current(), this.runners.values());
    for (let count = 0; count < create; count++) {
      const runner = newRunnerName(this.options.name, this.options.context.random.uuidHex());
      const job = this.jobs.requestFor(runner);
      const { installationName: installation } = this;
      this.runners.add({ installation, scaleSet: this.options.name, runner, job, agent: null, started: false });
    }
    for (const name of [...cancel, ...remove]) this.endRunner(name, 'not-needed');
    if (create > 0) this.queue.add('report');
    return againMs === undefined ? 'done' : { requeueAfterMs: againMs };
  }

  private endRunner(name: string, reason: EndReason): void {
    this.runners.get(name)?.end(reason);
    this.queue.add(name);
  }

  private ended(runner: Runner): void {
    const { context, name } = this.options;
    const { reason = 'left', detail = '' } = runner.ending ?? {};
    this.runners.delete(runner.name);
    this.planner.ended(runner);
    context.metrics.count(RUNNERS_ENDED, { installation: this.installationName, scale_set: name, reason });
    const fields = { runner: runner.name, reason, node_id: runner.lease?.nodes[0]?.id, detail };
    if (reason === 'job-done' || reason === 'not-needed') this.log.info('A runner has ended', fields);
    else this.log.warn('A runner has ended early', fields);
    this.queue.add('scale');
    this.queue.add('report');
    this.endIfRemoved();
  }

  private async opened(set: ScaleSetDocument, session: string): Promise<void> {
    this.set = set;
    this.session = session;
    this.comparison.reset();
    if (this.life !== undefined) await this.record.write(this.recordNow(), this.life.signal);
    for (const { name, lease } of this.runners.values()) if (lease !== undefined) this.queue.add(name);
  }

  private counted(statistics: Statistics): void {
    this.planner.statistics = statistics;
    this.queue.add('scale');
    this.queue.add('report');
  }

  private listed(names: ReadonlySet<string>): void {
    for (const name of this.planner.withoutJob(this.runners.values())) this.endRunner(name, 'takes-no-job');
    if (this.planner.settling.compare(names)) this.queue.add('scale');
  }

  private noteHealth(problem: string | undefined): void {
    if (problem === undefined) this.lastAnswer = this.options.context.clock.now();
    if (this.problem === problem) return;
    this.problem = problem;
    this.queue.add('report');
  }

  /** Returns the number of jobs that can be served: those that have a node or get one, and what launchers have left. */
  private capacity(): { readonly jobs: number; readonly reason: string } {
    const { context } = this.options;
    const { maxRunners } = this.current();
    const served = this.runners.values().filter(({ state, lease, requestId }) => {
      if (state === 'ending') return false;
      return lease !== undefined || context.store.requests.get(requestId ?? '')?.request.state === 'pending';
    }).length;
    const { nodes, reason } = context.capacity.of(this.key);
    const { isPaused, requestProblem = '' } = this.planner;
    const free = isPaused ? 0 : nodes;
    const why = isPaused ? `node requests fail: ${requestProblem}` : reason;
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
    const { available = 0, assigned = 0, running = 0 } = this.planner.statistics ?? {};
    const { jobs: capacity, reason: capacityReason } = this.capacity();
    return {
      ...{ installation: this.installationName, scaleSet: name, url: this.options.installation().scope.url },
      ...{ nodeLabel: this.settings.nodeLabel, bridge: context.identifier },
      ...{ id: this.set?.id ?? null, session: this.session, capacity, capacityReason },
      ...{ jobsAvailable: available, jobsAssigned: assigned, jobsRunning: running },
      runners: this.report.counts(this.runners.values()),
      problem: this.problem ?? this.planner.requestProblem ?? null,
      written: context.clock.now() / 1000,
      jobs: this.jobs.shown(),
      phases: this.phases.summary(),
    };
  }
}

function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}
