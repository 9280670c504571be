/** Waits until nodes can be logged into, and gathers their ssh host keys; a limited number of connections at a time. */

import { type Clock, Slots } from '@nodepool/core';
import { scanWith, type NodeLogin } from './scan-node.js';

export interface NodeScannerOptions {
  readonly clock: Clock;
  /** Connections at the same time. Default 200. */
  readonly concurrency?: number;
}

/**
 * A node takes a place only while a connection to it is made and used, not while it is waited for: nodes that do not
 * answer yet do not hold up those that do.
 */
export class NodeScanner {
  private readonly slots: Slots;
  private scans = 0;

  constructor(private readonly options: NodeScannerOptions) {
    this.slots = new Slots(options.concurrency ?? 200);
  }

  /** Connections that wait for a place. */
  get queueLength(): number {
    return this.slots.queueLength;
  }

  /** Scans that have not ended. */
  get running(): number {
    return this.scans;
  }

  /** See `scanNode`. */
  async scan(login: NodeLogin): Promise<readonly string[]> {
    this.scans += 1;
    try {
      return await scanWith(login, this.options.clock, this.slots);
    } finally {
      this.scans -= 1;
    }
  }
}
