/** The work queue of controllers. */

import { VirtualClock } from '@nodepool/core/testing';
import { describe, expect, it } from '@jest/globals';
import {
  silentLogger,
  TaskSupervisor,
  WorkQueue,
  type Logger,
  type Reconciled,
  type WorkQueueOptions,
} from '../../src/index.js';
import { seededRandom } from '../../src/testing/index.js';

/** A queue whose reconciliations end when the test ends them. */
class QueueHarness {
  readonly clock = new VirtualClock();
  readonly started: string[] = [];
  readonly warnings: { readonly message: string; readonly fields: unknown }[] = [];
  readonly tasks = new TaskSupervisor(this.clock, (name, error) => {
    throw new Error(`${name} failed`, { cause: error });
  });
  readonly queue: WorkQueue<string>;
  private readonly running = new Map<string, (end: () => Reconciled) => void>();

  constructor(options: Partial<WorkQueueOptions<string>> = {}) {
    const log: Logger = { ...silentLogger, warn: (message, fields) => void this.warnings.push({ message, fields }) };
    this.queue = new WorkQueue<string>({
      ...{ clock: this.clock, random: { ...seededRandom(1), next: () => 1 }, tasks: this.tasks, log },
      name: (key) => `work on ${key}`,
      about: (key) => ({ node_id: key }),
      reconcile: (key) => {
        this.started.push(`${key}@${this.clock.monotonic()}`);
        return new Promise((resolve, reject) => {
          this.running.set(key, (end) => {
            this.running.delete(key);
            try {
              resolve(end());
            } catch (error) {
              reject(error instanceof Error ? error : new Error(String(error)));
            }
          });
        });
      },
      ...options,
    });
  }

  async end(key: string, result: Reconciled = 'done'): Promise<void> {
    this.running.get(key)?.(() => result);
    await this.clock.advance(0);
  }

  async fail(key: string, error = new Error('refused')): Promise<void> {
    this.running.get(key)?.(() => {
      throw error;
    });
    await this.clock.advance(0);
  }
}

describe('a work queue', () => {
  it('reconciles a key once for all additions of one turn, and not within the call', async () => {
    const { queue, started, clock } = new QueueHarness();
    queue.add('a');
    queue.add('b');
    queue.add('a');
    expect(started).toEqual([]);
    await clock.advance(0);
    expect(started).toEqual(['a@0', 'b@0']);
  });

  it('reconciles a key at its earliest requested time', async () => {
    const { queue, started, clock } = new QueueHarness();
    queue.add('a', 500);
    queue.add('a', 100);
    queue.add('a', 900);
    await clock.advance(1000);
    expect(started).toEqual(['a@100']);
  });

  it('reconciles a key again if it was added meanwhile, and never twice concurrently', async () => {
    const harness = new QueueHarness();
    const { queue, started, clock } = harness;
    queue.add('a');
    await clock.advance(0);
    queue.add('a');
    queue.add('a', 50);
    await clock.advance(10);
    expect(started).toEqual(['a@0']);
    await harness.end('a');
    expect(started).toEqual(['a@0', 'a@10']);
    await harness.end('a');
    await clock.advance(1000);
    expect(started).toEqual(['a@0', 'a@10']);
    expect(queue.has('a')).toBe(false);
  });

  it('requeues a key after the requested delay, or earlier if it is added', async () => {
    const harness = new QueueHarness();
    const { queue, started, clock } = harness;
    queue.add('a');
    await clock.advance(0);
    await harness.end('a', { requeueAfterMs: 100 });
    await clock.advance(100);
    await harness.end('a', { requeueAfterMs: 100 });
    queue.add('a', 20);
    await clock.advance(100);
    expect(started).toEqual(['a@0', 'a@100', 'a@120']);
  });

  it('does not run a paused key until its failures are forgotten', async () => {
    const harness = new QueueHarness();
    const { queue, started, clock } = harness;
    queue.add('a');
    await clock.advance(0);
    await harness.end('a', { pauseMs: 100 });
    queue.add('a');
    await clock.advance(100);
    expect(started).toEqual(['a@0', 'a@100']);
    await harness.end('a', { pauseMs: 100 });
    queue.forgetFailures('a');
    await clock.advance(0);
    expect(started).toEqual(['a@0', 'a@100', 'a@100']);
  });

  it('retries failures with a doubling delay up to the maximum, and starts over after a success', async () => {
    const harness = new QueueHarness({ backOff: { firstMs: 100, longestMs: 400 } });
    const { queue, started, clock } = harness;
    queue.add('a');
    await clock.advance(0);
    for (let i = 0; i < 4; i += 1) {
      await harness.fail('a');
      queue.add('a');
      await clock.advance(400);
    }
    expect(started).toEqual(['a@0', 'a@100', 'a@600', 'a@1200', 'a@1600']);
    await harness.end('a');
    queue.add('a');
    await clock.advance(0);
    await harness.fail('a');
    await clock.advance(100);
    expect(started.at(-1)).toBe('a@1700');
  });

  it('logs a failure with the key, the number of failures and the delay, and shows the retry', async () => {
    const harness = new QueueHarness({ backOff: { firstMs: 100, longestMs: 400 } });
    const { queue, warnings, clock } = harness;
    queue.add('a');
    await clock.advance(0);
    const error = new Error('refused');
    await harness.fail('a', error);
    expect(warnings).toEqual([
      {
        message: 'Background work failed; retrying',
        fields: { node_id: 'a', task: 'work on a', failures: 1, seconds: 0.1, error },
      },
    ]);
    expect(queue.activity()).toEqual({
      running: [],
      due: [],
      delayed: 1,
      retries: [{ key: 'a', failures: 1, waitMs: 100 }],
    });
  });

  it('waits at least the delay that the error requests', async () => {
    const harness = new QueueHarness({ backOff: { firstMs: 100, longestMs: 100 } });
    const { queue, started, clock } = harness;
    queue.add('a');
    await clock.advance(0);
    await harness.fail('a', Object.assign(new Error('throttled'), { retryAfterMs: 250 }));
    await clock.advance(250);
    await harness.fail('a', Object.assign(new Error('throttled'), { retryAfterMs: 1 }));
    await clock.advance(250);
    expect(started).toEqual(['a@0', 'a@250', 'a@350']);
  });

  it('retries a failed key at once when its failures are forgotten', async () => {
    const harness = new QueueHarness();
    const { queue, started, clock } = harness;
    queue.add('a');
    await clock.advance(0);
    await harness.fail('a');
    queue.forgetFailures('a');
    await clock.advance(0);
    expect(started).toEqual(['a@0', 'a@0']);
    expect(queue.activity().retries).toEqual([]);
  });

  it('reconciles a limited number of keys concurrently, the longest due first', async () => {
    const harness = new QueueHarness({ concurrency: 2 });
    const { queue, started, clock } = harness;
    queue.add('d', 10);
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await clock.advance(10);
    expect(started).toEqual(['a@0', 'b@0']);
    expect(queue.activity().due).toEqual(['c', 'd']);
    await harness.end('b');
    await harness.end('a');
    expect(started).toEqual(['a@0', 'b@0', 'c@10', 'd@10']);
  });

  it('lets a function choose the next key, and calls it again after the delay that it returns', async () => {
    const harness: QueueHarness = new QueueHarness({
      select: (due, running) => {
        const last = due.at(-1);
        if (running.size === 0) return { next: last?.key };
        const waited = last === undefined ? 0 : harness.clock.monotonic() - last.since;
        return waited >= 100 ? { next: last?.key } : { next: undefined, againMs: 100 - waited };
      },
    });
    const { queue, started, clock } = harness;
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await clock.advance(99);
    expect(started).toEqual(['c@0']);
    await clock.advance(1);
    expect(started).toEqual(['c@0', 'b@100', 'a@100']);
  });

  it('removes a key, also one that failed, without stopping its running reconciliation', async () => {
    const harness = new QueueHarness();
    const { queue, started, clock } = harness;
    queue.add('a', 100);
    queue.add('b');
    queue.add('c');
    await clock.advance(0);
    await harness.fail('b');
    for (const key of ['a', 'b', 'c']) queue.remove(key);
    expect(queue.isRunning('c')).toBe(true);
    await harness.end('c');
    await clock.advance(100_000);
    expect(started).toEqual(['b@0', 'c@0']);
    expect(queue.activity()).toEqual({ running: [], due: [], delayed: 0, retries: [] });
    expect(clock.pending).toBe(0);
  });

  it('is idle when no key runs and none is due', async () => {
    const harness = new QueueHarness({ concurrency: 1 });
    const { queue, clock } = harness;
    let idle = false;
    queue.add('a');
    queue.add('b');
    queue.add('later', 1000);
    void queue.idle().then(() => (idle = true));
    await clock.advance(0);
    await harness.end('a');
    expect(idle).toBe(false);
    await harness.end('b');
    expect(idle).toBe(true);
  });

  it('drains on close: running reconciliations end, no other starts', async () => {
    const harness = new QueueHarness({ concurrency: 1 });
    const { queue, started, clock } = harness;
    for (const key of ['a', 'b']) queue.add(key);
    queue.add('c', 10);
    await clock.advance(0);
    queue.add('a');
    queue.close();
    queue.add('d');
    let drained = false;
    void queue.idle().then(() => (drained = true));
    await clock.advance(100);
    expect(drained).toBe(false);
    await harness.end('a', { requeueAfterMs: 0 });
    await clock.advance(100_000);
    expect(drained).toBe(true);
    expect(started).toEqual(['a@0']);
    expect(clock.pending).toBe(0);
  });

  it('aborts running reconciliations, without a retry or a report of their errors', async () => {
    const harness = new QueueHarness({
      reconcile: (key, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error(`${key} was aborted`)));
        }),
    });
    harness.queue.add('a');
    await harness.clock.advance(0);
    harness.queue.abort(new Error('the program stops'));
    await harness.queue.idle();
    expect(harness.warnings).toEqual([]);
    expect(harness.queue.has('a')).toBe(false);
  });

  it('shows running reconciliations in the stack dump', async () => {
    const { queue, tasks, clock } = new QueueHarness();
    queue.add('a');
    await clock.advance(30);
    expect(tasks.list()).toMatchObject([{ name: 'work on a', ageMs: 30 }]);
    expect(queue.activity().running).toEqual([{ key: 'a', ageMs: 30 }]);
  });
});
