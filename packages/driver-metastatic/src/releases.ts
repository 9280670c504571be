/** Releases backing nodes when their time has come. */

import type { BackingNodes, Call, Logger } from '@nodepool/core';
import type { BackingSettings } from './config.js';
import type { DamagedNodes } from './damaged-nodes.js';
import type { IsolatedWork } from './isolated-work.js';
import { expiresAt, releasedAt, unusableOf } from './lifetime.js';
import type { Backing } from './slots.js';

export interface ReleaseOptions {
  readonly backing: BackingNodes;
  readonly settings: ReadonlyMap<string, BackingSettings>;
  readonly damaged: DamagedNodes;
  readonly work: IsolatedWork;
  readonly log: Logger;
}

export class Releases {
  constructor(private readonly options: ReleaseOptions) {}

  /** Releases the backing nodes that are due. `yielding`: those that other labels need. `now`: unix milliseconds. */
  async releaseDue(
    backings: readonly Backing[],
    yielding: ReadonlySet<string>,
    call: Call,
    now: number,
  ): Promise<void> {
    const { work } = this.options;
    const isDue = (each: Backing): boolean => this.releasedAt(each, now, yielding.has(each.id)) <= now;
    const due = backings.filter((each) => isDue(each) && !work.isWaiting(each.id));
    await Promise.all(due.map((each) => this.release(each, yielding.has(each.id), call)));
  }

  /** Returns the next time at which a backing node is released or becomes too old, unix milliseconds. */
  nextAt(backings: readonly Backing[], now: number): number {
    const times = backings.flatMap((each) => {
      const known = this.options.settings.get(each.data.label);
      return [this.releasedAt(each, now), known === undefined ? Infinity : expiresAt(each, known)];
    });
    return Math.min(...times.filter((time) => time > now));
  }

  private releasedAt(each: Backing, now: number, yields = false): number {
    const { backing, settings, damaged } = this.options;
    const { label } = each.data;
    const known = settings.get(label);
    if (damaged.mayHaveMore(each)) return Infinity;
    // A launcher with another configuration has the label.
    const isOthers = known === undefined && unusableOf(each.held) === undefined && backing.isServed(label);
    return isOthers ? Infinity : releasedAt(each, known, now, yields);
  }

  private async release({ id, held, data }: Backing, yields: boolean, call: Call): Promise<void> {
    const { backing, work, log } = this.options;
    const { label, launched, idle, reason } = data;
    const why = held.lost ?? reason ?? (yields ? 'another label waits for nodes of the full backing pool' : null);
    const fields = { node_id: id, label, launched, idle, reason: why };
    const what = 'A backing node could not be released';
    const isReleased = await work.run(id, what, fields, () => backing.release(held, call));
    if (isReleased === true) log.info('Released a backing node', fields);
  }
}
