/** Tests of the history of the last day, and of the journal that preserves it over a restart. */

import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import type * as FileSystem from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { API_ANSWERS, API_CALLS, silentLogger, silentMetrics, type Logger } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import { Distribution } from '../../src/diagnostics/history/distribution.js';
import { Recorder } from '../../src/diagnostics/history/recorder.js';
import { HISTORY_STEP_MS } from '../../src/diagnostics/history/history.js';
import { Journal } from '../../src/diagnostics/history/journal.js';
import { World, pool, provider, type RunningLauncher } from '../support/world.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodepool-history-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

/** Returns a logger that keeps warnings. */
function warnings(): { log: Logger; messages: string[] } {
  const messages: string[] = [];
  return { messages, log: { ...silentLogger, warn: (message) => messages.push(message) } };
}

describe('the history of a launcher', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });
  afterEach(async () => {
    expect(await world.end()).toEqual([]);
  });

  /** Starts the recorder on the records of the launcher; the launcher itself reports to other timelines. */
  async function recorderOf({ store, launcher }: RunningLauncher, log = silentLogger): Promise<Recorder> {
    const activity = (): ReturnType<typeof launcher.activity> => launcher.activity();
    const { clock } = world;
    const recorder = new Recorder({ store, clock, log, metrics: silentMetrics, activity, stateDir: directory });
    await recorder.start();
    return recorder;
  }

  const launcher = (): Promise<RunningLauncher> =>
    world.launcher([provider('demo', [pool('main', ['small'], { 'max-servers': 2 })])]);

  it('has the requests, nodes and limits of each interval, and continues after a restart', async () => {
    const running = await launcher();
    const recorder = await recorderOf(running);
    expect(recorder.persisted).toBe(true);
    const first = await world.served(['small']);
    await world.served(['small']);
    const waiting = await world.submit(['small']);
    await world.clock.advance(HISTORY_STEP_MS);
    const life = recorder.timelines.request(first)!;
    await recorder.stop();

    const next = await recorderOf(running);
    const restored = next.timelines.request(first)!;
    expect([restored.facts, restored.closed(), restored.ended]).toEqual([life.facts, life.closed(), life.ended]);
    const lasting = [next.timelines.request(waiting), next.timelines.node('0000000000')];
    expect(lasting.map((each) => [each?.phase, each?.end])).toEqual([
      ['order', undefined],
      ['ready', undefined],
    ]);
    const [step] = next.history.buckets();
    expect(step).toMatchObject({ fulfilled: 2, failed: 0, waiting: 1, nodes: { ready: 2 } });
    expect(step?.labels.get('small')).toMatchObject({ fulfilled: 2, waiting: 1 });
    expect(step?.providers.get('demo')?.used).toBe(2);
    expect(next.history.toNode(({ toNode }) => toNode).count).toBe(2);
    await next.stop();
  });

  it('counts launch attempts and calls of the last minutes by provider', async () => {
    const running = await launcher();
    const recorder = await recorderOf(running);
    const place = { provider: 'demo', pool: 'main', label: 'small' };
    const error = { code: 'keyscan', message: 'no host keys', scope: 'node' } as const;
    recorder.timelines.attempted('0000000007', place, { number: 1, offer: 'label small', error });
    recorder.timelines.attempted('0000000007', place, { number: 2, offer: 'label small', error: undefined });
    const labels = { provider: 'demo', service: 'compute', method: 'GET', operation: 'servers' };
    recorder.metrics.observe(API_CALLS, labels, 120);
    recorder.metrics.observe(API_CALLS, labels, 80);
    for (const status of ['200', '404', '429', '503', 'none']) {
      recorder.metrics.count(API_ANSWERS, { provider: 'demo', service: 'compute', status });
    }
    expect(recorder.history.recent('demo')).toMatchObject({
      ...{ launches: 2, failures: 1, calls: 2, failedCalls: 2, throttled: 1 },
    });
    expect(recorder.history.recent('demo').latency.mean).toBe(100);
    await world.clock.advance(4 * HISTORY_STEP_MS);
    expect(recorder.history.recent('demo')).toMatchObject({ launches: 0, calls: 0 });
    await recorder.stop();
  });

  it('counts the failures that cost a request an attempt, and the successes after the last of them', async () => {
    const recorder = await recorderOf(await launcher());
    const place = { provider: 'demo', pool: 'main', label: 'small' };
    const ends = (code?: 'keyscan' | 'transient', scope: 'node' | 'provider' = 'node'): void => {
      const error = code === undefined ? undefined : { code, message: code, scope };
      recorder.timelines.attempted('0000000007', place, { number: 1, offer: 'label small', error });
    };
    expect(recorder.failures.recent('demo')).toBeUndefined();
    ends();
    ends('keyscan');
    // It moves to another pool.
    for (let index = 0; index < 9; index += 1) ends('transient', 'provider');
    expect(recorder.failures.recent('demo')).toMatchObject({ ended: 2, failed: 1, text: 'keyscan', readySince: 0 });
    ends();
    ends();
    expect(recorder.failures.recent('demo')).toMatchObject({ ended: 4, failed: 1, readySince: 2 });
    await world.clock.advance(15 * 60_000 + 1);
    expect(recorder.failures.recent('demo')).toBeUndefined();
    await recorder.stop();
  });

  it('is kept in memory if the directory cannot be used, with a warning', async () => {
    const file = join(directory, 'file');
    await writeFile(file, '');
    const running = await launcher();
    const { log, messages } = warnings();
    const { store } = running;
    const { clock } = world;
    const activity = (): ReturnType<typeof running.launcher.activity> => running.launcher.activity();
    const recorder = new Recorder({ store, clock, log, metrics: silentMetrics, activity, stateDir: file });
    await recorder.start();
    expect(recorder.persisted).toBe(false);
    expect(messages).toEqual(['The history cannot be preserved in the state directory; it is kept in memory only']);
    await recorder.stop();
  });
});

const files = createRequire(__filename)('node:fs/promises') as typeof FileSystem;

/** Lets the disk have room for this number of bytes; the rest of a write fails as the kernel has it fail. */
function fillDisk(space: number): void {
  let left = space;
  for (const name of ['appendFile', 'writeFile'] as const) {
    const write = files[name];
    jest.spyOn(files, name).mockImplementation(async (file, data, options) => {
      const bytes = Buffer.from(data as string);
      const written = bytes.subarray(0, left);
      left -= written.length;
      await write(file, written, options);
      if (written.length < bytes.length) {
        throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
      }
    });
  }
}

describe('the journal', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });
  const clock = new VirtualClock();
  const journal = (log = silentLogger, maxBytes?: number): Journal =>
    new Journal({ directory, clock, log, ...(maxBytes === undefined ? {} : { maxBytes }) });

  it('skips damaged lines and continues after a truncated line', async () => {
    const first = journal();
    await first.load();
    first.add({ a: 1 });
    await first.close();
    await writeFile(first.file, `${await readFile(first.file, 'utf8')}{"a": 2`);
    const { log, messages } = warnings();
    const second = journal(log);
    expect(await second.load()).toEqual([{ a: 1 }]);
    expect(messages).toEqual(['Lines of the history are damaged and were skipped']);
    second.add({ a: 3 });
    await second.close();
    expect(await journal().load()).toEqual([{ a: 1 }, { a: 3 }]);
  });

  it('sets aside a file of another version and starts a new one', async () => {
    const { log, messages } = warnings();
    const of = journal(log);
    await writeFile(of.file, '{"format":"nodepool-history","version":2,"begun":0}\n{"a":1}\n');
    expect(await of.load()).toEqual([]);
    await of.close();
    expect(messages).toEqual(['The history is not in the format of this version; a new one is started']);
    expect((await readdir(directory)).sort()).toEqual(['launcher-history.jsonl', 'launcher-history.jsonl.unreadable']);
  });

  it('replaces the file before the present one when that is large', async () => {
    const of = journal(silentLogger, 200);
    await of.load();
    for (let a = 0; a < 50; a += 1) {
      of.add({ a });
      await clock.advance(10_000);
    }
    await of.close();
    const entries = (await journal().load()) as { a: number }[];
    expect(entries.at(-1)).toEqual({ a: 49 });
    expect(entries.length).toBeLessThan(50);
    expect(entries.length).toBeGreaterThan(15);
  });

  async function added(of: Journal, entry: object): Promise<void> {
    of.add(entry);
    await of.flush();
  }

  it.each([0, 1, 20, 60, 65, 70])('survives a process that is killed after %d bytes', async (length) => {
    const first = journal();
    await first.load();
    await added(first, { a: 1 });
    await added(first, { a: 2 });
    await truncate(first.file, length);
    const second = journal();
    const survived = await second.load();
    await added(second, { a: 3 });
    await second.close();
    expect(await journal().load()).toEqual([...survived, { a: 3 }]);
  });

  it('survives a full disk, and continues when there is space again', async () => {
    const { log, messages } = warnings();
    const of = journal(log);
    await of.load();
    await added(of, { a: 1 });
    fillDisk(5);
    await added(of, { lost: 1 });
    await added(of, { lost: 2 });
    expect(of.healthy).toBe(false);
    jest.restoreAllMocks();
    await added(of, { a: 2 });
    expect(of.healthy).toBe(true);
    await of.close();
    expect(messages).toEqual(['The history cannot be written; it is lost at the next restart']);
    expect(await journal().load()).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it.each([0, 20])('keeps the previous file if a full disk has only %d bytes for the next one', async (space) => {
    const of = journal(silentLogger, 100);
    await of.load();
    await added(of, { a: 'x'.repeat(100) });
    fillDisk(space);
    await added(of, { lost: 1 });
    await added(of, { lost: 2 });
    jest.restoreAllMocks();
    await added(of, { a: 2 });
    await of.close();
    expect(await journal().load()).toEqual([{ a: 'x'.repeat(100) }, { a: 2 }]);
  });

  it('is read from a full disk', async () => {
    const first = journal();
    await first.load();
    await added(first, { a: 1 });
    await first.close();
    await truncate(first.file, (await readFile(first.file)).length - 1);
    fillDisk(0);
    const { log, messages } = warnings();
    const second = journal(log);
    expect(await second.load()).toEqual([{ a: 1 }]);
    expect([second.healthy, messages]).toEqual([
      false,
      ['The history cannot be written; it is lost at the next restart'],
    ]);
  });

  it('leaves the file to another launcher that writes it', async () => {
    const { log, messages } = warnings();
    const first = journal(log);
    await first.load();
    const second = journal(log);
    await second.load();
    await added(first, { first: 1 });
    await added(second, { second: 1 });
    await added(first, { first: 2 });
    await added(second, { second: 2 });
    expect([first.healthy, second.healthy]).toEqual([true, false]);
    await Promise.all([first.close(), second.close()]);
    expect(messages).toEqual(['Another program writes the history of this launcher; it is kept in memory only']);
    expect(await journal().load()).toEqual([{ first: 1 }, { first: 2 }]);
  });

  it('starts a file again that an operator has deleted', async () => {
    const of = journal();
    await of.load();
    await added(of, { a: 1 });
    await rm(of.file);
    await added(of, { a: 2 });
    await of.close();
    expect(await journal().load()).toEqual([{ a: 2 }]);
  });
});

it('quantiles are exact to a few percent, also when distributions are merged', () => {
  const [even, odd] = [new Distribution(), new Distribution()];
  for (let ms = 1; ms <= 1000; ms += 1) (ms % 2 === 0 ? even : odd).add(ms * 10);
  even.merge(Distribution.from(JSON.parse(JSON.stringify(odd)) as object));
  expect(even.count).toBe(1000);
  expect(even.quantile(0.5)! / 5000).toBeCloseTo(1, 1);
  expect(even.quantile(0.95)! / 9500).toBeCloseTo(1, 1);
  expect(even.mean).toBe(5005);
  expect(new Distribution().quantile(0.5)).toBeNull();
});
