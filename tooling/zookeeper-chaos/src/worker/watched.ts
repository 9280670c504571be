/** Counts the events of one persistent watch and reads the watched znode, on successive connections. */

import type { Stat, WatchEvent, ZooKeeper } from '@nodepool/zookeeper';
import type { WatchedRead } from '../history.js';
import type { Recorder } from './recorder.js';

interface Segment {
  readonly path: string;
  readonly reads: WatchedRead[];
  events: number;
}

export interface WatchedSettings {
  readonly path: string;
  readonly mode: 'persistent' | 'persistent-recursive';
  /** Returns true if an event counts as a change. */
  readonly counts: (event: WatchEvent) => boolean;
  /** Returns the number of changes according to a znode's stat. */
  readonly changes: (stat: Stat) => number;
}

export class Watched {
  private segment: Segment | undefined;

  constructor(
    private readonly zk: ZooKeeper,
    private readonly recorder: Recorder,
    private readonly settings: WatchedSettings,
  ) {
    const { path, mode, counts } = settings;
    zk.on('state', (state) => {
      if (state !== 'connected') this.segment = undefined;
    });
    zk.watch(path, mode, {
      onReset: () => {
        const segment: Segment = { path, reads: [], events: 0 };
        this.segment = segment;
        recorder.segments.push(segment);
      },
      onEvent: (event) => {
        if (this.segment !== undefined && counts(event)) this.segment.events++;
      },
    });
  }

  async read(): Promise<void> {
    const { path, changes } = this.settings;
    const issuedIn = this.segment;
    const issuedAt = issuedIn?.events ?? 0;
    const { value: stat } = await this.recorder.attempt(`exists ${path}`, () => this.zk.exists(path));
    const { segment } = this;
    if (stat === undefined || segment === undefined) return;
    // A read of the previous connection is repeated after the watch was set.
    const eventsBefore = segment === issuedIn ? issuedAt : 0;
    segment.reads.push({ changes: changes(stat), eventsBefore, eventsAfter: segment.events });
  }
}
