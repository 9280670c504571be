/**
 * The time of the ZooKeeper ensemble. Leases expire by this time, so that gateways with wrong clocks agree. The answer
 * to each write has the time of the server. Between the answers, the monotonic clock of this process counts, since its
 * other clock can jump.
 */

import type { Clock } from '@nodepool/core';
import { ensurePath, isZooKeeperError, type CallOptions, type Stat, type ZooKeeper } from '@nodepool/zookeeper';
import { CLOCK_PATH } from './record.js';

export class EnsembleClock {
  /** Time of the ensemble at the zero of the monotonic clock, unix ms; undefined before the first measurement. */
  private originMs: number | undefined;

  constructor(
    private readonly zooKeeper: ZooKeeper,
    private readonly clock: Clock,
  ) {}

  /** The current time in unix seconds. */
  now(): number {
    const { clock, originMs } = this;
    return (originMs === undefined ? clock.now() : originMs + clock.monotonic()) / 1000;
  }

  /** Measures the time with a write. */
  async measure(options?: CallOptions): Promise<void> {
    for (;;) {
      const sent = this.clock.monotonic();
      try {
        this.observe(await this.zooKeeper.set(CLOCK_PATH, new Uint8Array(), options), sent);
        return;
      } catch (error) {
        if (isZooKeeperError(error, 'no-node')) await ensurePath(this.zooKeeper, CLOCK_PATH, options);
        else if (!isZooKeeperError(error, 'outcome-unknown')) throw error;
        options?.signal?.throwIfAborted();
      }
    }
  }

  /** Notes the time of a write of this process, which was sent at `sentMs` of its monotonic clock. */
  observe({ mtime }: Pick<Stat, 'mtime'>, sentMs: number): void {
    const received = this.clock.monotonic();
    // A slow answer tells little.
    if (received - sentMs > MAX_ROUND_TRIP_MS) return;
    this.originMs = mtime - (sentMs + received) / 2;
  }
}

const MAX_ROUND_TRIP_MS = 2000;
