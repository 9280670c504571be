/**
 * Compares the work queue with a model that stores per key the requested time, the end of the hold, and whether it
 * runs.
 */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { silentLogger, TaskSupervisor, WorkQueue, type Reconciled } from '../../src/index.js';
import { seededRandom } from '../../src/testing/index.js';

const KEYS = ['a', 'b', 'c', 'd'] as const;
type Key = (typeof KEYS)[number];
const BACK_OFF = { firstMs: 8, longestMs: 50 } as const;

type Step =
  | { readonly kind: 'add'; readonly key: Key; readonly delayMs: number }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'end'; readonly key: Key; readonly result: Reconciled }
  | { readonly kind: 'fail'; readonly key: Key; readonly retryAfterMs: number }
  | { readonly kind: 'remove' | 'forget'; readonly key: Key };

const key = fc.constantFrom(...KEYS);
const ms = fc.integer({ min: 0, max: 30 });
const result: fc.Arbitrary<Reconciled> = fc.oneof(
  fc.constant<Reconciled>('done'),
  ms.map((requeueAfterMs) => ({ requeueAfterMs })),
  ms.map((pauseMs) => ({ pauseMs })),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('add'), key, delayMs: ms }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('advance'), ms }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('end'), key, result }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fail'), key, retryAfterMs: ms }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('remove', 'forget'), key }) },
);

/** State of one key. */
class KeyModel {
  wantedAt = Infinity;
  heldUntil = 0;
  failures = 0;
  running = false;
  freeSince = 0;

  get dueAt(): number {
    return Math.max(this.wantedAt, this.heldUntil, this.freeSince);
  }

  want(at: number): void {
    this.wantedAt = Math.min(this.wantedAt, at);
  }

  end(now: number, heldMs: number): void {
    this.running = false;
    this.freeSince = now;
    this.heldUntil = now + heldMs;
  }
}

class Comparison {
  readonly clock = new VirtualClock();
  private readonly models = new Map<Key, KeyModel>(KEYS.map((each) => [each, new KeyModel()]));
  private readonly ends = new Map<Key, { resolve(result: Reconciled): void; reject(error: Error): void }>();
  private readonly violations: string[] = [];
  private readonly queue: WorkQueue<Key>;
  private readonly tasks = new TaskSupervisor(this.clock, (name, error) => {
    throw new Error(name, { cause: error });
  });

  constructor(private readonly concurrency: number) {
    this.queue = new WorkQueue<Key>({
      ...{ clock: this.clock, tasks: this.tasks, log: silentLogger, concurrency, backOff: BACK_OFF },
      random: { ...seededRandom(1), next: () => 1 },
      name: (each) => each,
      reconcile: (each) => this.started(each),
    });
  }

  async apply(next: Step): Promise<void> {
    if (next.kind === 'advance') {
      // Small steps detect a key that starts late.
      for (let i = 0; i < next.ms; i += 1) {
        await this.clock.advance(1);
        this.check();
      }
      return;
    }
    this.change(next);
    await this.clock.advance(0);
    this.check();
  }

  private change(next: Exclude<Step, { readonly kind: 'advance' }>): void {
    const model = this.model(next.key);
    const now = this.clock.monotonic();
    switch (next.kind) {
      case 'add':
        model.want(now + next.delayMs);
        this.queue.add(next.key, next.delayMs);
        return;
      case 'remove':
        Object.assign(model, { wantedAt: Infinity, heldUntil: 0, failures: 0 });
        this.queue.remove(next.key);
        return;
      case 'forget':
        Object.assign(model, { heldUntil: 0, failures: 0 });
        this.queue.forgetFailures(next.key);
        return;
      case 'end':
        if (!model.running) return;
        model.failures = 0;
        model.end(now, next.result !== 'done' && 'pauseMs' in next.result ? next.result.pauseMs : 0);
        if (next.result !== 'done') {
          model.want(now + ('pauseMs' in next.result ? 0 : next.result.requeueAfterMs));
        }
        this.ends.get(next.key)?.resolve(next.result);
        return;
      case 'fail': {
        if (!model.running) return;
        model.failures += 1;
        const doubled = Math.min(BACK_OFF.firstMs * 2 ** (model.failures - 1), BACK_OFF.longestMs);
        model.end(now, Math.max(doubled, next.retryAfterMs));
        model.want(now);
        const { retryAfterMs } = next;
        this.ends.get(next.key)?.reject(Object.assign(new Error('refused'), { retryAfterMs }));
      }
    }
  }

  private started(each: Key): Promise<Reconciled> {
    const model = this.model(each);
    const others = [...this.models.values()].filter((other) => !other.running);
    // An exception here would count as a failure of the reconciliation.
    if (model.running) this.violations.push(`${each} runs already`);
    if (this.runningCount() >= this.concurrency) this.violations.push(`${each} is one too many`);
    if (model.dueAt > this.clock.monotonic()) this.violations.push(`${each} is not due before ${model.dueAt}`);
    if (others.some((other) => other.dueAt < model.dueAt)) this.violations.push(`${each} passed another key`);
    Object.assign(model, { running: true, wantedAt: Infinity, heldUntil: 0 });
    return new Promise((resolve, reject) => this.ends.set(each, { resolve, reject }));
  }

  private check(): void {
    expect(this.violations).toEqual([]);
    const waiting = [...this.models.values()].filter(
      (model) => !model.running && model.dueAt <= this.clock.monotonic(),
    );
    if (waiting.length > 0) expect(this.runningCount()).toBe(this.concurrency);
    const { running, due, delayed } = this.queue.activity();
    expect(running.length).toBe(this.runningCount());
    expect(due.length).toBe(waiting.length);
    const pending = [...this.models.values()].filter((model) => !model.running && model.wantedAt !== Infinity);
    expect(delayed).toBe(pending.length - waiting.length);
  }

  private runningCount(): number {
    return [...this.models.values()].filter((model) => model.running).length;
  }

  private model(each: Key): KeyModel {
    return this.models.get(each) ?? new KeyModel();
  }
}

describe('a work queue compared with a model', () => {
  it('starts the items that are due while workers are free, the longest due first (seed 20261122)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60, size: 'max' }),
        fc.constantFrom(1, 2, Infinity),
        async (steps, concurrency) => {
          const comparison = new Comparison(concurrency);
          for (const each of steps) await comparison.apply(each);
        },
      ),
      { seed: 20_261_122, numRuns: 60 },
    );
  });
});
