/** Measures the latency of ZooKeeper, and records when the state of the connection last changed. */

import { isZooKeeperError, type ConnectionState, type ZooKeeper } from '@nodepool/zookeeper';
import type { Clock, Metrics, Timer } from '@nodepool/core';
import { ZOOKEEPER_LATENCY } from '../metrics/process-metrics.js';

const INTERVAL_MS = 15_000;
const TIMEOUT_MS = 10_000;
/** Number of measurements that are kept; they cover the last ten minutes. */
const MAX_SAMPLES = 40;

export interface ZooKeeperHealth {
  readonly state: ConnectionState;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Name of the connected server, e.g. `zk1:2181 (192.0.2.7)`. */
  readonly server: string | undefined;
  /** Reason why the last attempt to connect failed; undefined while connected. */
  readonly lastProblem: string | undefined;
  /** Quantiles of the durations of reads in the last ten minutes, milliseconds; null before the first. */
  readonly latency: { readonly p50: number | null; readonly p95: number | null };
}

export class ZooKeeperWatch {
  private since: number;
  /** Durations of the last reads, milliseconds, oldest first. */
  private readonly samples: number[] = [];
  private timer: Timer | undefined;
  private lastProblem: string | undefined;
  private readonly stateChanged = (): void => {
    this.since = this.options.clock.now();
  };
  private readonly warned = (error: Error): void => {
    this.lastProblem = error.message;
  };

  constructor(
    private readonly options: {
      readonly zooKeeper: ZooKeeper;
      readonly clock: Clock;
      readonly metrics: Metrics;
      readonly onError: (error: unknown) => void;
    },
  ) {
    this.since = options.clock.now();
  }

  start(): void {
    this.options.zooKeeper.on('state', this.stateChanged);
    this.options.zooKeeper.on('warning', this.warned);
    this.schedule();
  }

  stop(): void {
    this.options.zooKeeper.off('state', this.stateChanged);
    this.options.zooKeeper.off('warning', this.warned);
    this.timer?.cancel();
  }

  read(): ZooKeeperHealth {
    const { state, server } = this.options.zooKeeper;
    const sorted = [...this.samples].sort((a, b) => a - b);
    const quantile = (part: number): number | null => sorted[Math.ceil(part * sorted.length) - 1] ?? null;
    const lastProblem = state === 'connected' ? undefined : this.lastProblem;
    return { state, server, since: this.since, lastProblem, latency: { p50: quantile(0.5), p95: quantile(0.95) } };
  }

  private schedule(): void {
    const next = (): void => {
      this.measure().catch(this.options.onError);
      this.schedule();
    };
    this.timer = this.options.clock.schedule(INTERVAL_MS, next, { background: true });
  }

  private async measure(): Promise<void> {
    const { zooKeeper, clock, metrics } = this.options;
    if (zooKeeper.state !== 'connected') return;
    const began = clock.monotonic();
    try {
      await zooKeeper.exists('/', { timeoutMs: TIMEOUT_MS });
    } catch (error) {
      // The state of the connection shows the failure.
      if (isZooKeeperError(error)) return;
      throw error;
    }
    const ms = clock.monotonic() - began;
    metrics.observe(ZOOKEEPER_LATENCY, {}, ms);
    this.samples.push(ms);
    if (this.samples.length > MAX_SAMPLES) this.samples.shift();
  }
}
