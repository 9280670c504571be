/** Tests of the spans of requests, launches and calls. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger, type Span, type SpanOptions, type Tracing } from '@nodepool/core';
import { TimelineSpans, Timelines } from '@nodepool/status';
import { pool, provider, World } from '../support/world.js';

interface Recorded extends SpanOptions {
  readonly name: string;
  readonly span: Span;
  ended: boolean;
  failure: string | undefined;
}

/** Records spans in memory. */
class RecordedTraces implements Tracing {
  readonly spans: Recorded[] = [];

  span(name: string, options: SpanOptions = {}): Span {
    const span = {
      ...{ traceId: '', spanId: String(this.spans.length), sampled: true },
      set: () => undefined,
      end: (_?: number, failure?: string) => {
        recorded.ended = true;
        recorded.failure = failure;
      },
    };
    const recorded: Recorded = { ...options, name, span, ended: false, failure: undefined };
    this.spans.push(recorded);
    return span;
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  named(name: string): Recorded[] {
    return this.spans.filter((span) => span.name === name);
  }
}

let world: World;
let traces: RecordedTraces;
let spans: TimelineSpans | undefined;
beforeEach(() => {
  world = new World();
  traces = new RecordedTraces();
  world.traced = (store) => {
    const timelines = new Timelines({ store, clock: world.clock, onError: () => undefined });
    timelines.start();
    spans = new TimelineSpans({ tracing: traces, clock: world.clock, store, timelines });
    spans.start();
    return { timelines: spans, traces: spans, log: spans.watch(silentLogger) };
  };
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const FAILING = {
  ...{ 'create-errors': 0, 'lost-answers': 0, 'failed-instances': 1, 'stuck-instances': 0, 'delete-errors': 0 },
  ...{ 'list-errors': 0, 'auth-errors': 0, 'capacity-errors': 0, 'upload-errors': 0 },
};

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const SECTION = provider('demo', [pool('main', ['small'], { 'max-servers': 1 })]);

it('a request has a span in the trace of its requestor, with its waits and launches', async () => {
  await world.launcher([SECTION]);
  const first = await world.served(['small']);
  const second = await world.submit(['small'], { data: { traceparent: TRACEPARENT } });
  await world.clock.advance(5000);
  await world.giveBack(first);
  await world.fulfilled(second);
  const [, request] = traces.named('node request');
  expect(request).toMatchObject({
    parent: { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', sampled: true },
    ended: true,
    failure: undefined,
  });
  const below = traces.spans.filter(({ parent }) => parent === request?.span).map(({ name }) => name);
  expect(below).toContain('launch');
  expect(below).toContain('limit');
  expect(traces.named('launch').map(({ ended }) => ended)).toEqual([true, true]);
});

it('only the launcher that served a request writes its span', async () => {
  await world.launcher([SECTION]);
  await world.launcher([provider('elsewhere', [pool('main', ['other'])])], 'launcher2');
  const id = await world.served(['small']);
  await world.clock.advance(5000);
  await world.giveBack(id);
  expect(traces.named('node request').map(({ ended }) => ended)).toEqual([true, false]);
});

it('a call that is made for a launch has a span below it', async () => {
  world.cloud.configure({ bootTimeMs: [2000, 2000] });
  await world.launcher([SECTION]);
  await world.served(['small']);
  const [launch] = traces.named('launch');
  const calls = traces.spans.filter(({ isCall, parent }) => isCall === true && parent === launch?.span);
  expect(calls.map(({ name }) => name)).toEqual(expect.arrayContaining([expect.stringMatching(/instance/i)]));
});

it('a failed launch has the reason in its span', async () => {
  world.cloud.configure({ faults: FAILING });
  await world.launcher([provider('demo', [pool('main', ['small'])], { 'launch-retries': 0 })]);
  const id = await world.submit(['small']);
  await world.inState(id, 'failed');
  expect(traces.named('launch')[0]?.failure).toContain('failed');
  expect(traces.named('node request')[0]?.failure).toBeDefined();
});
