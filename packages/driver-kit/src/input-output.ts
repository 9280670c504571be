/** Tracks the process's pending work other than timers: file operations, connections to itself, and compression. */

import { systemClock } from '@nodepool/core';
import { isCompressing } from './compression.js';
import { connectionsOfProcess } from './connections.js';

/** Types in `process.getActiveResourcesInfo` for operations that end without being closed. */
const OPERATION = /Req(Callback|Promise|Wrap)?$|ConnectWrap$/;

/** Number of event loop turns for code that continues after an operation has ended. */
const TURNS = 3;

export class InputOutput {
  private readonly connections = connectionsOfProcess();
  private inTransit = '';
  private changedAt = 0;

  /** `transitTimeoutMs` is the time after which sent but unreceived data counts as lost (ms). */
  constructor(private readonly transitTimeoutMs: number) {}

  /** Waits some event loop turns. Returns true if none of them had a file operation, compression or transmission. */
  async idleTurns(): Promise<boolean> {
    let idle = true;
    for (let turn = 0; turn < TURNS; turn += 1) {
      const activity = this.connections.activity();
      await new Promise((resolve) => setImmediate(resolve));
      idle &&= !this.busy && this.connections.activity() === activity;
    }
    return idle;
  }

  private get busy(): boolean {
    if (isCompressing()) return true;
    if (process.getActiveResourcesInfo().some((name) => OPERATION.test(name))) return true;
    const inTransit = this.connections.inTransit();
    const now = systemClock.monotonic();
    if (inTransit !== this.inTransit) this.changedAt = now;
    this.inTransit = inTransit;
    return inTransit !== '' && now - this.changedAt < this.transitTimeoutMs;
  }
}
