/** Watches what this process has under way besides timers: file operations, connections to itself, and compression. */

import { systemClock } from '@nodepool/core';
import { isCompressing } from './compression.js';
import { connectionsOfProcess } from './connections.js';

/** Names of `process.getActiveResourcesInfo` for operations that end by themselves. */
const OPERATION = /Req(Callback|Promise|Wrap)?$|ConnectWrap$/;

/** Turns of the event loop for code that continues after an operation has ended. */
const TURNS = 3;

export class InputOutput {
  private readonly connections = connectionsOfProcess();
  private inTransit = '';
  private changedAt = 0;

  /** `patienceMs`: what was sent and is not received for so long counts as never received. */
  constructor(private readonly patienceMs: number) {}

  /**
   * Lets the event loop turn a few times. Returns true if no file operation, compression or transmission was under way or
   * ended in any of the turns.
   */
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
    return inTransit !== '' && now - this.changedAt < this.patienceMs;
  }
}
