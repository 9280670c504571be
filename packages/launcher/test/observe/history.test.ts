/** Tests of the history of the last day, and of the journal that preserves it over a restart. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { API_ANSWERS, API_CALLS, silentLogger, silentMetrics, type Logger } from '@nodepool/core';
import { HISTORY_STEP_MS, Recorder } from '@nodepool/status';
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
