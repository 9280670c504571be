/** The measurement of ZooKeeper clients: operations, concurrency and clocks. */

import { systemClock } from '@nodepool/core';

/** The measured operations of a client. Unsupported ones are missing. */
export interface MeasuredClient {
  create(path: string, data: Buffer): Promise<unknown>;
  set(path: string, data: Buffer): Promise<unknown>;
  get(path: string): Promise<unknown>;
  delete(path: string): Promise<unknown>;
  /** Sets the same path this many times in one transaction. */
  readonly setInTransaction?: (path: string, data: Buffer, times: number) => Promise<unknown>;
  close(): Promise<unknown>;
}

/** A line of a client's output, in JSON. */
export interface Measurement {
  readonly operation: string;
  readonly inFlight: number;
  readonly perSecond: number;
  /** Processor time of the client's process per operation, user and system (microseconds). */
  readonly cpuPerOperation: number;
}

export const IN_FLIGHT: readonly number[] = [1, 100, 1000];
/**
 * Operations in an order in which each finds the znodes that it requires. They include those of the benchmark of the
 * ZooKeeper paper (brownsys/zookeeper-benchmark): reads and writes of one znode, and creations, writes and deletions of
 * many. The mix has the smallest share of reads that the paper names for Yahoo's services.
 */
export const OPERATIONS: readonly string[] = [
  'create',
  'set',
  'get',
  'set of one znode',
  'get of one znode',
  'two gets and a set',
  'transaction of 10',
  'delete',
];
export const WATCH_EVENTS = 'persistent watch event';
const OPERATIONS_PER_TRANSACTION = 10;
const WARM_UP = { inFlight: 100, count: 3000 };
const DATA = Buffer.alloc(100, 'x');

export function report(measurement: Measurement): void {
  process.stdout.write(`${JSON.stringify(measurement)}\n`);
}

/** Measures and reports all operations with this many in flight. `folder` must not exist. */
export async function measureClient(
  client: MeasuredClient,
  folder: string,
  inFlight: number,
  operations: number,
): Promise<void> {
  await client.create(folder, DATA);
  // Warms up, because the performance of a daemon's first second is irrelevant.
  await measureAll(client, `${folder}/warm-up`, WARM_UP, () => undefined);
  await measureAll(client, `${folder}/measured`, { inFlight, count: operations }, report);
  await client.close();
}

async function measureAll(
  client: MeasuredClient,
  folder: string,
  { inFlight, count }: { readonly inFlight: number; readonly count: number },
  tell: (measurement: Measurement) => void,
): Promise<void> {
  await client.create(folder, DATA);
  const path = (index: number): string => `${folder}/${index}`;
  const work: Record<string, (index: number) => Promise<unknown>> = {
    create: (index) => client.create(path(index), DATA),
    set: (index) => client.set(path(index), DATA),
    get: (index) => client.get(path(index)),
    'set of one znode': () => client.set(folder, DATA),
    'get of one znode': () => client.get(folder),
    'two gets and a set': (index) => (index % 3 === 2 ? client.set(path(index), DATA) : client.get(path(index))),
    delete: (index) => client.delete(path(index)),
  };
  const { setInTransaction } = client;
  if (setInTransaction !== undefined) {
    work['transaction of 10'] = (index) => setInTransaction(path(index), DATA, OPERATIONS_PER_TRANSACTION);
  }
  for (const operation of OPERATIONS) {
    const once = work[operation];
    if (once !== undefined) tell({ operation, inFlight, ...(await measure(count, inFlight, once)) });
  }
}

/** Runs `operation` for 0 to `count` - 1 with the given concurrency. */
async function measure(
  count: number,
  inFlight: number,
  operation: (index: number) => Promise<unknown>,
): Promise<Pick<Measurement, 'perSecond' | 'cpuPerOperation'>> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await operation(next++);
  };
  const stop = stopwatch(count);
  await Promise.all(Array.from({ length: inFlight }, lane));
  return stop();
}

/** Starts to measure time and processor time. The returned function ends the measurement after `count` operations. */
export function stopwatch(count: number): () => Pick<Measurement, 'perSecond' | 'cpuPerOperation'> {
  const began = systemClock.monotonic();
  const cpuBefore = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(cpuBefore);
    const seconds = (systemClock.monotonic() - began) / 1000;
    return { perSecond: count / seconds, cpuPerOperation: (user + system) / count };
  };
}
