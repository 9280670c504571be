/**
 * A program on the requestor library with the options and output of `requestor.py`, so that one test suite covers both.
 * It compares its results with the records in ZooKeeper.
 */

import { parseArgs } from 'node:util';
import { sleep, systemClock, systemRandom, type JsonObject } from '@nodepool/core';
import {
  connectRequestor,
  RequestFailedError,
  RequestTimeoutError,
  type Requestor,
  type RequestSpec,
} from '@nodepool/requestor';
import { connect, type ClientOptions, type ZooKeeper } from '@nodepool/zookeeper';
import { labelsOffered } from './conditions.js';

const { values: options } = parseArgs({
  options: {
    zookeeper: { type: 'string', default: '127.0.0.1:2181' },
    ca: { type: 'string' },
    cert: { type: 'string' },
    key: { type: 'string' },
    labels: { type: 'string' },
    requests: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '1' },
    hold: { type: 'string', default: '0' },
    timeout: { type: 'string', default: '60' },
    priority: { type: 'string', default: '200' },
    'relative-priority': { type: 'string', default: '0' },
    provider: { type: 'string' },
    tenant: { type: 'string', default: 'example-tenant' },
    requestor: { type: 'string', default: 'requestor-program' },
    'no-reuse': { type: 'boolean', default: false },
    'wait-deleted': { type: 'boolean', default: false },
    'wait-label': { type: 'boolean', default: false },
    die: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
});
const labels = options.labels?.split(',') ?? [];
const timeoutMs = Number(options.timeout) * 1000;

interface Result {
  request?: string;
  outcome?: string;
  nodes?: readonly string[];
  addresses?: readonly unknown[];
  providers?: readonly unknown[];
  seconds?: number;
  problems: string[];
}

async function main(): Promise<number> {
  const { ca = '', cert = '', key = '' } = options;
  const servers: Omit<ClientOptions, 'random'> = {
    servers: options.zookeeper,
    ...(ca === '' ? {} : { tls: { ca, cert, key } }),
  };
  const requestor = await connectRequestor({ ...servers, name: options.requestor, sessionTimeoutMs: 30_000 });
  const zooKeeper = connect(servers);
  if (options['wait-label']) await labelsOffered(zooKeeper, labels, AbortSignal.timeout(timeoutMs));
  const began = systemClock.monotonic();
  const results: Result[] = [];
  let left = Number(options.requests);
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const result: Result = { problems: [] };
      results.push(result);
      try {
        await runOne(requestor, zooKeeper, result);
      } catch (error) {
        result.outcome ??= 'error';
        result.problems.push(String(error));
      }
      if (options.verbose) process.stdout.write(`${JSON.stringify(result)}\n`);
    }
  };
  await Promise.all(Array.from({ length: Number(options.parallel) }, worker));
  await requestor.close();
  await zooKeeper.close();
  return report(results, (systemClock.monotonic() - began) / 1000);
}

async function runOne(requestor: Requestor, zooKeeper: ZooKeeper, result: Result): Promise<void> {
  const began = systemClock.monotonic();
  const data = { build_set_uuid: systemRandom.uuidHex(), tenant_name: options.tenant };
  const spec: RequestSpec = {
    labels,
    priority: Number(options.priority),
    relativePriority: Number(options['relative-priority']),
    tenant: options.tenant,
    data,
    provider: options.provider ?? null,
    reuse: !options['no-reuse'],
    durable: true,
  };
  const request = await requestor.request(spec, { timeoutMs });
  result.request = request.id;
  try {
    await request.fulfilled({ timeoutMs });
  } catch (error) {
    result.outcome = outcomeOf(error);
    await request.cancel();
    return;
  }
  result.seconds = (systemClock.monotonic() - began) / 1000;
  const record = await read(zooKeeper, `/nodepool/requests/${request.id}`);
  if (JSON.stringify(record['requestor_data']) !== JSON.stringify(data)) result.problems.push('requestor_data changed');
  const lease = await request.lock({ timeoutMs });
  const ids = lease.nodes.map(({ id }) => id);
  const nodes = await Promise.all(ids.map((id) => read(zooKeeper, `/nodepool/nodes/${id}`)));
  result.problems.push(...nodes.flatMap((node, index) => problemsOf(node, request.id, labels[index] ?? '')));
  if (ids.length !== labels.length) result.problems.push(`${ids.length} nodes for ${labels.length} labels`);
  if (new Set(nodes.map(({ provider, pool }) => JSON.stringify([provider, pool]))).size > 1) {
    result.problems.push('nodes of several pools');
  }
  await lease.use({ userData: { request: request.id } });
  result.outcome = 'fulfilled';
  result.nodes = ids;
  result.addresses = nodes.map((node) => node['interface_ip']);
  result.providers = [...new Set(nodes.map(({ provider }) => provider))].sort();
  if (options.die) process.kill(process.pid, 'SIGKILL');
  await sleep(systemClock, Number(options.hold) * 1000);
  if (lease.lost.aborted) result.problems.push('the lease was lost');
  await lease.return();
  if (options['wait-deleted']) await lease.deleted({ timeoutMs });
}

function problemsOf(node: JsonObject, requestId: string, label: string): string[] {
  const { state, type, allocated_to: allocatedTo } = node;
  return [
    ...(state === 'ready' ? [] : [`a node is ${JSON.stringify(state)}`]),
    ...(Array.isArray(type) && type.includes(label) ? [] : [`a node is ${JSON.stringify(type)}, wanted ${label}`]),
    ...(allocatedTo === requestId ? [] : [`a node is allocated to ${JSON.stringify(allocatedTo)}`]),
  ];
}

function outcomeOf(error: unknown): string {
  if (error instanceof RequestFailedError) return 'failed';
  if (error instanceof RequestTimeoutError) return 'timeout';
  throw error;
}

async function read(zooKeeper: ZooKeeper, path: string): Promise<JsonObject> {
  return JSON.parse(Buffer.from((await zooKeeper.get(path)).data).toString()) as JsonObject;
}

/** Prints the summary. Returns the exit status. */
function report(results: readonly Result[], wallSeconds: number): number {
  const outcomes: Record<string, number> = {};
  for (const { outcome = 'none' } of results) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  const problems = results.flatMap((result) => result.problems);
  const nodes = results.flatMap((result) => result.nodes ?? []);
  if (new Set(nodes).size !== nodes.length) problems.push('a node was handed out twice');
  const seconds = results.flatMap((result) => result.seconds ?? []).sort((a, b) => a - b);
  const at = (share: number): number => seconds[Math.ceil(share * seconds.length) - 1] ?? 0;
  const latency = seconds.length === 0 ? {} : { latency_s: { median: at(0.5), p95: at(0.95), max: at(1) } };
  const summary = {
    ...{ requests: results.length, outcomes, problems, nodes: nodes.length, wall_s: wallSeconds },
    ...latency,
  };
  process.stdout.write(`${JSON.stringify(summary)}\n`);
  return problems.length === 0 && outcomes['fulfilled'] === results.length ? 0 : 1;
}

main().then(
  (status) => (process.exitCode = status),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  },
);
