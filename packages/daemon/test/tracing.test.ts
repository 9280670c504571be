/** Tests that spans reach an OTLP receiver over HTTP, and that nothing is loaded without an endpoint. */

import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '@nodepool/core';
import { openTracing } from '../src/index.js';

interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code: number; readonly message?: string };
}

interface Received {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: ReceivedSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
}

/** The built package: jest cannot load the parts of OpenTelemetry that load modules dynamically. */
const PACKAGE = join(__dirname, '..', 'dist', 'index.js');

const ORIGIN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', sampled: true };

let server: Server;
let bodies: Received[];
let paths: (string | undefined)[];

beforeEach(async () => {
  bodies = [];
  paths = [];
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      paths.push(request.url);
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()) as Received);
      response.setHeader('Content-Type', 'application/json');
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
});

/** Runs statements with `tracing`, `daemon` (the package) and `ORIGIN` in a process with these variables. */
async function traced(statements: string, variables: Readonly<Record<string, string>> = {}): Promise<void> {
  const script = `
    const daemon = require(${JSON.stringify(PACKAGE)});
    const ORIGIN = ${JSON.stringify(ORIGIN)};
    const silent = () => undefined;
    const log = { debug: silent, info: silent, warn: silent, error: silent };
    const options = { service: 'nodepool-test', version: '1.2.3', log, env: process.env };
    const tracing = daemon.openTracing(options);
    ${statements}
    tracing.stop();
  `;
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { PATH: process.env['PATH'], OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...variables };
  await promisify(execFile)(process.execPath, ['-e', script], { env });
}

const spans = (): readonly ReceivedSpan[] =>
  bodies.flatMap(({ resourceSpans }) =>
    resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((each) => each.spans)),
  );

function attributesOf({ attributes }: Pick<ReceivedSpan, 'attributes'>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

it('spans reach the receiver with their parents, times, attributes and failures', async () => {
  await traced(
    `
    const request = tracing.span('node request', { at: 1000, parent: ORIGIN, attributes: { labels: ['a', 'b'] } });
    const launch = tracing.span('launch', { at: 2000, parent: request });
    const call = { service: 'compute', method: 'POST', operation: 'servers', durationMs: 500, status: 503 };
    daemon.apiCallSpan({ tracing, clock: { now: () => 4000 } }, 'demo', call, launch);
    launch.end(5000, 'no capacity');
    request.end(6000);`,
    { OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test' },
  );
  expect(paths).toEqual(['/v1/traces']);
  const [resource] = bodies.flatMap(({ resourceSpans }) => resourceSpans.map((each) => each.resource));
  expect(attributesOf(resource ?? { attributes: [] })).toMatchObject({
    'service.name': 'nodepool-test',
    'deployment.environment': 'test',
  });
  const found = new Map(spans().map((span) => [span.name, span]));
  const [request, launch, call] = ['node request', 'launch', 'compute.servers'].map((name) => found.get(name));
  expect(request).toMatchObject({
    traceId: ORIGIN.traceId,
    parentSpanId: ORIGIN.spanId,
    startTimeUnixNano: '1000000000',
    endTimeUnixNano: '6000000000',
  });
  expect(launch).toMatchObject({
    traceId: ORIGIN.traceId,
    parentSpanId: request?.spanId,
    status: { code: 2, message: 'no capacity' },
  });
  expect(call).toMatchObject({ parentSpanId: launch?.spanId, kind: 3, status: { code: 2, message: '503' } });
  expect(call?.startTimeUnixNano).toBe('3500000000');
  expect(attributesOf(call ?? { attributes: [] })).toMatchObject({
    'nodepool.provider': 'demo',
    'http.response.status_code': 503,
  });
});

it('durations of a builder become spans', async () => {
  await traced(`
    const metrics = daemon.spansOfDurations({ observe: silent }, tracing, { now: () => 10_000 }, { build: 'image build' });
    metrics.observe({ name: 'build' }, { image: 'debian' }, 4000);
    metrics.observe({ name: 'other' }, {}, 1);`);
  expect(spans()).toMatchObject([
    { name: 'image build', startTimeUnixNano: '6000000000', endTimeUnixNano: '10000000000' },
  ]);
});

it('the sampler of the environment decides, and the decision of the requestor counts', async () => {
  await traced(
    `
    tracing.span('dropped').end();
    tracing.span('sampled by its requestor', { parent: ORIGIN }).end();`,
    { OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
  );
  expect(spans().map(({ name }) => name)).toEqual(['sampled by its requestor']);
});

it('an empty variable is as good as none', async () => {
  await traced(`tracing.span('sent').end();`, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' });
  expect(spans().map(({ name }) => name)).toEqual(['sent']);
});

it.each([
  [{}],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_SDK_DISABLED: 'True' }],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_TRACES_EXPORTER: 'none' }],
])('tracing is off with %j', (env) => {
  expect(openTracing({ service: 'test', version: '1', log: silentLogger, env })).toBeUndefined();
});
