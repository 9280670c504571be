/** Waits for the logins of nodes and collects their ssh host keys, with a limited number of connections at a time. */

import { type Clock, Slots } from '@nodepool/core';
import { scanNode, type NodeLogin } from './scan-node.js';

export interface NodeScannerOptions {
  readonly clock: Clock;
  /** Limit of simultaneous connections. Default: 200. */
  readonly concurrency?: number;
}

/** Scans nodes. A scan needs a permit only while a connection is open: nodes that do not answer delay no others. */
export class NodeScanner {
  private readonly slots: Slots;
  private scans = 0;

  constructor(private readonly options: NodeScannerOptions) {
    this.slots = new Slots(options.concurrency ?? 200);
  }

  /** Number of connections that wait for a permit. */
  get queueLength(): number {
    return this.slots.queueLength;
  }

  get running(): number {
    return this.scans;
  }

  async scan(login: NodeLogin): Promise<readonly string[]> {
    this.scans += 1;
    try {
      return await scanNode(login, this.options.clock, this.slots);
    } finally {
      this.scans -= 1;
    }
  }
}
