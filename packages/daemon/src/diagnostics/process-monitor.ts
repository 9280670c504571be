import type { Clock, Logger, Metrics } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { reportProcess } from '../metrics/process-metrics.js';
import { EventLoopMonitor } from './event-loop.js';
import { ZooKeeperWatch } from './zookeeper-watch.js';

export interface ProcessMonitorOptions {
  readonly zooKeeper: ZooKeeper;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Measures the process and its connection to ZooKeeper, and reports their metrics. */
export class ProcessMonitor {
  readonly eventLoop = new EventLoopMonitor();
  private readonly watch: ZooKeeperWatch;
  private endReport: () => void = () => undefined;

  constructor(private readonly options: ProcessMonitorOptions) {
    const { zooKeeper, clock, log, metrics } = options;
    this.watch = new ZooKeeperWatch({
      ...{ zooKeeper, clock, metrics },
      onError: (error) => log.error('The latency of ZooKeeper could not be measured', error),
    });
  }

  start(): void {
    const { eventLoop } = this;
    const { zooKeeper, metrics } = this.options;
    eventLoop.start();
    this.watch.start();
    this.endReport = reportProcess({ metrics, zooKeeper, eventLoop });
  }

  stop(): void {
    this.endReport();
    this.watch.stop();
    this.eventLoop.stop();
  }
}
