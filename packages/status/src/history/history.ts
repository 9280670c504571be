/** The last day in steps of five minutes: requests, launches, nodes and cloud API calls, by label and by provider. */

import { MIN_READY_REQUESTOR, type Clock, type Timer } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { ProviderSummary } from '../facts/activity.js';
import { Distribution } from './distribution.js';
import type { GroupCost } from '../metrics/cost-meter.js';
import { greatestCosts, HistoryBucket, type ProviderValues } from './history-bucket.js';
import { providerOf } from '../metrics/phase-metrics.js';
import type { RequestLife } from '../timeline/request-life.js';
import type { Timelines } from '../timeline/timelines.js';

export const HISTORY_STEP_MS = 300_000;
/** A day and an hour. */
const MAX_BUCKETS = 300;
/** Number of steps for current values such as the failure rate: the current step and the two before. */
const RECENT_BUCKETS = 3;
/** Number of steps of the last hour. */
const HOUR_BUCKETS = 13;

export interface HistoryOptions {
  readonly store: Pick<Store, 'requests' | 'nodes' | 'complete'>;
  readonly clock: Clock;
  readonly events: Timelines['events'];
  readonly activity: () => readonly ProviderSummary[];
  /** Returns the costs since the last call. Default: there are none. */
  readonly costs?: () => readonly GroupCost[];
  /** Called with every step that has ended. */
  readonly onStep?: (bucket: HistoryBucket) => void;
}

export class History {
  private readonly past: HistoryBucket[] = [];
  private current: HistoryBucket;
  private timer: Timer | undefined;
  private unsubscribe: (() => void)[] = [];

  constructor(private readonly options: HistoryOptions) {
    this.current = new HistoryBucket(stepOf(options.clock.now()));
  }

  /** Adds a step that an earlier process recorded. Call it in the order in which the steps were recorded. */
  restore(bucket: HistoryBucket): void {
    if (bucket.start < this.oldest()) return;
    // A process that stops records its unfinished last step; the next process continues it.
    if (bucket.start === this.current.start) this.current = bucket;
    if (bucket.start >= this.current.start) return;
    if (this.past.at(-1)?.start === bucket.start) this.past.pop();
    this.past.push(bucket);
    if (this.past.length > MAX_BUCKETS) this.past.shift();
  }

  start(): void {
    const { events } = this.options;
    this.unsubscribe = [
      events.requestEnded.on((life) => this.requestEnded(life)),
      events.attempted.on(({ provider, attempt: { error } }) => {
        // An aborted launch says nothing about the provider.
        if (error?.code !== 'aborted') this.launched(provider, error !== undefined);
      }),
    ];
    this.schedule();
  }

  stop(): void {
    for (const end of this.unsubscribe) end();
    this.timer?.cancel();
    this.take();
    this.options.onStep?.(this.current);
  }

  /** Returns the steps of the last day, oldest first, including the current one. */
  buckets(): readonly HistoryBucket[] {
    const oldest = this.oldest();
    return [...this.past.filter(({ start }) => start >= oldest), this.current];
  }

  /** Returns the times to node of the last hour; if these are few, of the last day. */
  toNode(of: (bucket: HistoryBucket) => Distribution | undefined): Distribution {
    const buckets = this.buckets();
    const hour = merged(buckets.slice(-HOUR_BUCKETS), of);
    return hour.count >= 5 ? hour : merged(buckets, of);
  }

  /** Returns the sums of the last ten to fifteen minutes. */
  recent(provider: string): ProviderValues & { readonly windowMs: number } {
    const { clock } = this.options;
    const sums = new HistoryBucket(0).provider(provider);
    const buckets = this.buckets()
      .slice(-RECENT_BUCKETS)
      .filter(({ start }) => start > clock.now() - RECENT_BUCKETS * HISTORY_STEP_MS);
    for (const bucket of buckets) {
      const values = bucket.providers.get(provider);
      if (values === undefined) continue;
      for (const key of ['launches', 'failures', 'calls', 'failedCalls', 'throttled'] as const)
        sums[key] += values[key];
      sums.latency.merge(values.latency);
      sums.toNode.merge(values.toNode);
    }
    return { ...sums, windowMs: clock.now() - (buckets[0]?.start ?? clock.now()) };
  }

  /** Counts a cloud API call. */
  called(provider: string, ms: number): void {
    const values = this.current.provider(provider);
    values.calls += 1;
    values.latency.add(ms);
  }

  /** Counts an answer by HTTP status or error code. A 404 is a normal answer about something that is deleted. */
  answered(provider: string, status: string): void {
    const values = this.current.provider(provider);
    if (status === '429') values.throttled += 1;
    else if (!/^[123]/u.test(status) && status !== '404') values.failedCalls += 1;
  }

  private requestEnded(life: RequestLife): void {
    const { end, ended, created, facts } = life;
    if (end === undefined || ended === undefined) return;
    const { result } = ended;
    if (result === 'unseen') return;
    const { current } = this;
    current[result] += 1;
    const isTimed = result === 'fulfilled' && facts.requestor !== MIN_READY_REQUESTOR;
    new Set(facts.labels).forEach((name) => {
      const label = current.label(name);
      label[result] += 1;
      if (isTimed) label.toNode.add(end - created);
    });
    if (!isTimed) return;
    current.toNode.add(end - created);
    const provider = providerOf(life);
    if (provider !== '') current.provider(provider).toNode.add(end - created);
  }

  private launched(provider: string, failed: boolean): void {
    for (const values of [this.current, this.current.provider(provider)]) {
      values.launches += 1;
      if (failed) values.failures += 1;
    }
  }

  private schedule(): void {
    const { clock } = this.options;
    const untilNext = this.current.start + HISTORY_STEP_MS - clock.now();
    const next = (): void => {
      this.step();
      this.schedule();
    };
    this.timer = clock.schedule(Math.max(1, untilNext), next, { background: true });
  }

  private step(): void {
    const { clock, onStep } = this.options;
    const start = stepOf(clock.now());
    // After the clock was set back, the current step continues.
    if (start <= this.current.start) return;
    this.take();
    onStep?.(this.current);
    this.past.push(this.current);
    if (this.past.length > MAX_BUCKETS) this.past.shift();
    this.current = new HistoryBucket(start);
  }

  /** Sets the values that a step has at its end. */
  private take(): void {
    const { store, activity, costs } = this.options;
    const { current } = this;
    if (costs !== undefined) current.costs = greatestCosts([...current.costs, ...costs()]);
    if (!store.complete) return;
    const nodes: Record<string, number> = {};
    for (const { node } of store.nodes.all()) nodes[node.state] = (nodes[node.state] ?? 0) + 1;
    current.nodes = nodes;
    current.waiting = 0;
    for (const label of current.labels.values()) label.waiting = 0;
    for (const { request } of store.requests.inState('requested')) {
      current.waiting += 1;
      for (const label of new Set(request.node_types)) current.label(label).waiting += 1;
    }
    for (const { provider, used, limit } of activity()) {
      const values = current.provider(provider);
      values.used = used['instances'] ?? 0;
      values.limit = limit['instances'] ?? null;
    }
  }

  private oldest(): number {
    return this.options.clock.now() - MAX_BUCKETS * HISTORY_STEP_MS;
  }
}

function stepOf(now: number): number {
  return Math.floor(now / HISTORY_STEP_MS) * HISTORY_STEP_MS;
}

function merged(
  buckets: readonly HistoryBucket[],
  of: (bucket: HistoryBucket) => Distribution | undefined,
): Distribution {
  const sum = new Distribution();
  for (const bucket of buckets) {
    const part = of(bucket);
    if (part !== undefined) sum.merge(part);
  }
  return sum;
}
