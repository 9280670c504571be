/**
 * Series by the values of their labels, one label per level, which is faster than a string that combines the values.
 * Their number is limited, since label values can come from outside.
 */

import type { MetricLabels } from '@nodepool/core';

/** Limit of series per metric. */
export const MAX_SERIES = 5000;

interface Level<S> {
  readonly next: Map<string, Level<S>>;
  series: S | undefined;
}

export class LabelTree<S> {
  private readonly root = newLevel<S>();
  private readonly series: S[] = [];
  private isFull = false;

  /** `onDropped` is called once, for the first series that is dropped because there are too many. */
  constructor(
    private readonly names: readonly string[],
    private readonly make: (labels: MetricLabels<string>) => S,
    private readonly onDropped: () => void,
  ) {}

  /** The series, in the order of their creation. */
  get all(): readonly S[] {
    return this.series;
  }

  /** Returns the series of these labels, which is created if necessary; undefined if there are too many. */
  of(labels: MetricLabels<string>): S | undefined {
    const { names } = this;
    let level: Level<S> | undefined = this.root;
    for (let index = 0; index < names.length && level !== undefined; index += 1) {
      level = level.next.get(labels[names[index] ?? ''] ?? '');
    }
    return level?.series ?? this.add(labels);
  }

  private add(labels: MetricLabels<string>): S | undefined {
    if (this.series.length >= MAX_SERIES) {
      if (!this.isFull) this.onDropped();
      this.isFull = true;
      return undefined;
    }
    let level = this.root;
    for (const name of this.names) {
      const value = labels[name] ?? '';
      const next = level.next.get(value) ?? newLevel<S>();
      level.next.set(value, next);
      level = next;
    }
    level.series = this.make(labels);
    this.series.push(level.series);
    return level.series;
  }
}

function newLevel<S>(): Level<S> {
  return { next: new Map(), series: undefined };
}
