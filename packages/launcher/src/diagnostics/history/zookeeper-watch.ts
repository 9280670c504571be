/** Measures the latency of ZooKeeper, and since when the connection has its state. */

import { isZooKeeperError, type ConnectionState, type ZooKeeper } from '@nodepool/zookeeper';
import type { Clock, Metrics, Timer } from '@nodepool/core';
import { Distribution } from './distribution.js';
import { ZOOKEEPER_LATENCY } from '../metrics/launcher-metrics.js';

const INTERVAL_MS = 15_000;
const TIMEOUT_MS = 10_000;
/** Number of measurements: those of the last five to ten minutes. */
const MAX_SAMPLES = 20;

export interface ZooKeeperHealth {
  readonly state: ConnectionState;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Durations of reads in the last minutes. */
  readonly latency: Distribution;
}

export class ZooKeeperWatch {
  private since: number;
  private latency = new Distribution();
  private earlier = new Distribution();
  private timer: Timer | undefined;
  private readonly stateChanged = (): void => {
    this.since = this.options.clock.now();
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
    this.schedule();
  }

  stop(): void {
    this.options.zooKeeper.off('state', this.stateChanged);
    this.timer?.cancel();
  }

  read(): ZooKeeperHealth {
    const latency = new Distribution();
    latency.merge(this.earlier);
    latency.merge(this.latency);
    return { state: this.options.zooKeeper.state, since: this.since, latency };
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
    this.latency.add(ms);
    if (this.latency.count < MAX_SAMPLES) return;
    this.earlier = this.latency;
    this.latency = new Distribution();
  }
}
