/** The scale sets of bridges for GitHub Actions as ZooKeeper has them. A record is decoded when a view needs it. */

import type { Clock } from '@nodepool/core';
import { ELECTIONS_ROOT } from '@nodepool/store';
import { GITHUB_ROOT, scaleSetRecordIn } from '@nodepool/store/github';
import { treeCache, type TreeCache, type ZooKeeper } from '@nodepool/zookeeper';
import type { ScaleSets } from '../documents/sources.js';

/** The election of a scale set is `<root>/github~<installation>~<scale set>`, its contenders are the bridges. */
const CONTENDER = /^\/github~([^/]+)\/[^/]+$/;

export class ScaleSetRecords {
  private readonly records = new Map<string, Uint8Array>();
  /** Number of bridges, by the name of the record. */
  private readonly bridges = new Map<string, number>();
  private readonly trees: readonly TreeCache[];

  constructor(zooKeeper: ZooKeeper, clock: Clock, onWarning: (error: Error) => void) {
    const nameOf = (path: string): string => path.slice(GITHUB_ROOT.length + 1);
    this.trees = [
      treeCache(
        zooKeeper,
        GITHUB_ROOT,
        {
          onPut: ({ path, data }) => void this.records.set(nameOf(path), data),
          onRemove: ({ path }) => void this.records.delete(nameOf(path)),
        },
        { clock, onWarning },
      ),
      treeCache(
        zooKeeper,
        ELECTIONS_ROOT,
        {
          onPut: ({ path }) => this.count(path, 1),
          onRemove: ({ path }) => this.count(path, -1),
        },
        { clock, onWarning, wantsData: () => false },
      ),
    ];
  }

  read(): ScaleSets {
    const read = [...this.records]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, data]) => {
        const record = scaleSetRecordIn(data);
        return record === undefined ? [] : [{ record, bridges: this.bridges.get(name) ?? 0 }];
      });
    return { complete: this.trees.every(({ complete }) => complete), sets: read.flat() };
  }

  /** Number of scale sets, without reading them. */
  get size(): number {
    return [...this.records.keys()].filter((name) => name !== '').length;
  }

  close(): void {
    for (const tree of this.trees) tree.close();
  }

  private count(path: string, change: 1 | -1): void {
    const [, name] = CONTENDER.exec(path.slice(ELECTIONS_ROOT.length)) ?? [];
    if (name !== undefined) this.bridges.set(name, (this.bridges.get(name) ?? 0) + change);
  }
}
