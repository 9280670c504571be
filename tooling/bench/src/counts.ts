/** Counts the exchange of a launcher with ZooKeeper and its wake-ups, which depend little on the machine. */

import { sleep, systemClock } from '@nodepool/core';
import type { BenchmarkEnvironment } from './environment.js';
import { wakeUps } from './process-facts.js';
import { plain, row } from './rows.js';
import { burst } from './scenarios.js';
import type { Row } from './table.js';

const REQUESTS = 1000;
/** Time for which the idle launcher is observed, milliseconds: every periodic task of a launcher is in it. */
const IDLE_MS = 120_000;

const COUNTS = [
  ['requests to ZooKeeper', /^nodepool_zookeeper_requests_total\{.*\} (\S+)$/gm],
  ['bytes sent', /^nodepool_zookeeper_bytes_total\{.*direction="sent".*\} (\S+)$/gm],
  ['bytes received', /^nodepool_zookeeper_bytes_total\{.*direction="received".*\} (\S+)$/gm],
  ['watch events', /^nodepool_zookeeper_watch_events_total(?:\{.*\})? (\S+)$/gm],
] as const;
const WAKE_UPS = 'wake-ups of the main thread';

type Counts = ReadonlyMap<string, number>;

/** Counts of a warm burst, per node life, and of the idle launcher after it, per second. */
export async function counts(environment: BenchmarkEnvironment, signal: AbortSignal): Promise<Row[]> {
  await burst(environment, REQUESTS, signal);
  const life = await counted(environment, () => burst(environment, REQUESTS, signal));
  const idle = await counted(environment, () => sleep(systemClock, IDLE_MS, signal));
  return [
    ...rowsOf('per node life, 1,000 at once', life, REQUESTS),
    ...rowsOf('idle, per second', idle, IDLE_MS / 1000),
  ];
}

function rowsOf(when: string, totals: Counts, divisor: number): readonly Row[] {
  return [...totals].map(([what, total], index) =>
    row(`${index === 0 ? 'counts  ' : '   … '}${what} ${when}`, total / divisor, undefined, plain, '-'),
  );
}

async function counted(environment: BenchmarkEnvironment, work: () => Promise<unknown>): Promise<Counts> {
  const before = await countsOf(environment);
  await work();
  const after = await countsOf(environment);
  return new Map([...after].map(([what, count]) => [what, count - (before.get(what) ?? 0)]));
}

async function countsOf({ webappPort, launcher }: BenchmarkEnvironment): Promise<Counts> {
  const response = await fetch(`http://127.0.0.1:${webappPort}/metrics`);
  const text = await response.text();
  const counts = new Map<string, number>();
  for (const [what, pattern] of COUNTS) {
    const values = [...text.matchAll(pattern)].map(([, value]) => Number(value));
    if (values.length === 0) throw new Error(`the launcher's metrics have no ${what}`);
    counts.set(
      what,
      values.reduce((sum, value) => sum + value, 0),
    );
  }
  return counts.set(WAKE_UPS, wakeUps(launcher.pid));
}
