/**
 * Replays the jobs of a trace on a virtual clock against one label with ready nodes, and sums up waits and idle nodes.
 * Targets, forecasts and the time for which a target is held are those of the launcher's own code.
 */

import { nextTargetChange, QUARTER_MS, readyTarget, type ReadyForecast, type ReadySettings } from '@nodepool/config';
import { DemandCounter, DemandModel, HeldTarget, quarterOf } from '@nodepool/launcher';
import type { Job } from './trace.js';

export interface ReplayOptions {
  /** Time from the creation of a node until it is ready. */
  readonly bootMs: number;
  /** `max-idle-time`. */
  readonly maxIdleMs: number;
}

export interface ReplayResult {
  readonly jobs: number;
  /** Share of the jobs that found a ready node. */
  readonly servedAtOnce: number;
  /** Mean wait of all jobs (s). */
  readonly meanWaitS: number;
  readonly idleNodeHours: number;
  /** Nodes that no job used. */
  readonly unused: number;
}

export function replay(jobs: readonly Job[], ready: ReadySettings, options: ReplayOptions): ReplayResult {
  return new Replay(jobs, ready, options).run();
}

class Replay {
  private now: number;
  /** Times since when the ready nodes are idle, and times at which the nodes that boot are ready; earliest first. */
  private readonly idle: number[] = [];
  private readonly booting: number[] = [];
  private readonly ends: number[];
  private nextEnd = 0;
  private inUse = 0;
  private idleMs = 0;
  private waits = 0;
  private unused = 0;
  private target = 0;
  private targetChange = 0;
  private forecast: ReadyForecast | undefined;
  private readonly held: HeldTarget;
  private readonly counter: DemandCounter;
  private readonly model = new DemandModel();

  constructor(
    private readonly jobs: readonly Job[],
    private readonly ready: ReadySettings,
    private readonly options: ReplayOptions,
  ) {
    const [first] = jobs;
    this.now = first?.submitted ?? 0;
    // A job that found no ready node ends one boot time later; use is only approximate here.
    this.ends = jobs.map(({ submitted, durationMs }) => submitted + durationMs).sort((a, b) => a - b);
    this.held = new HeldTarget(options.maxIdleMs, this.now);
    this.counter = new DemandCounter(quarterOf(this.now));
  }

  run(): ReplayResult {
    const { jobs } = this;
    this.retarget();
    let nextQuarter = (quarterOf(this.now) + 1) * QUARTER_MS;
    let next = 0;
    for (;;) {
      const submitted = jobs[next]?.submitted;
      if (submitted === undefined) break;
      const end = this.ends[this.nextEnd] ?? Infinity;
      const at = Math.min(submitted, nextQuarter, end, this.targetChange, this.nextRemoval());
      this.advance(at);
      if (at === nextQuarter) {
        nextQuarter += QUARTER_MS;
        this.endQuarter();
      } else if (at === submitted) {
        next += 1;
        this.serve();
      } else if (at === end) {
        this.nextEnd += 1;
        this.inUse -= 1;
      }
      this.retarget();
      this.removeSurplus();
    }
    return {
      jobs: jobs.length,
      servedAtOnce: 1 - this.waits / jobs.length,
      meanWaitS: (this.waits * this.options.bootMs) / jobs.length / 1000,
      idleNodeHours: this.idleMs / 3_600_000,
      unused: this.unused,
    };
  }

  /** Lets time pass. */
  private advance(at: number): void {
    while ((this.booting[0] ?? Infinity) <= at) {
      const booted = this.booting.shift() ?? at;
      this.idleMs += this.idle.length * (booted - this.now);
      this.now = booted;
      this.idle.push(booted);
    }
    this.idleMs += this.idle.length * (at - this.now);
    this.now = at;
  }

  private serve(): void {
    this.counter.add(this.now, this.options.bootMs);
    this.inUse += 1;
    if (this.idle.shift() === undefined) this.waits += 1;
  }

  private endQuarter(): void {
    if (this.ready.forecast === undefined) return;
    const index = quarterOf(this.now);
    this.model.add(this.counter.begin(index));
    const { servedAtOnce } = this.ready.forecast;
    const counts = this.model.sizes([index, index + 1], servedAtOnce);
    this.forecast = { from: index * QUARTER_MS, counts, leadMs: this.options.bootMs };
  }

  private retarget(): void {
    const label = { minReady: 0, ready: this.ready };
    this.target = readyTarget(this.now, this.inUse, label, this.forecast).count;
    this.targetChange = nextTargetChange(this.now, label, this.forecast);
    this.held.set(this.target, this.now);
    while (this.idle.length + this.booting.length < this.target) this.booting.push(this.now + this.options.bootMs);
  }

  private removeSurplus(): void {
    while (this.nextRemoval() <= this.now) {
      this.idle.shift();
      this.unused += 1;
    }
  }

  /** Returns when the oldest node is deleted. */
  private nextRemoval(): number {
    const [oldest] = this.idle;
    if (oldest === undefined) return Infinity;
    const due = oldest + this.options.maxIdleMs;
    if (this.idle.length > this.held.at(this.now)) return Math.max(due, this.now);
    const fall = this.held.nextFall(this.now);
    return fall === Infinity ? Infinity : Math.max(due, fall);
  }
}
