/** Lets the launcher list the instances at once after a backing node with nodes was lost: they are lost with it. */

import { slotPlaceOf, type Node, type ProviderContext } from '@nodepool/core';
import { unusableOf } from './lifetime.js';
import type { Backing } from './slots.js';

export class LossWatch {
  /** Ids of backing nodes that are lost and have nodes. */
  private lost: ReadonlySet<string> = new Set();

  constructor(
    private readonly context: Pick<ProviderContext, 'checkInstances' | 'tasks' | 'log'>,
    private readonly owner: string,
  ) {}

  review(backings: readonly Backing[], users: readonly Node[]): void {
    const { context } = this;
    const usable = new Set(backings.flatMap(({ id, held }) => (unusableOf(held) === undefined ? [id] : [])));
    const lost = new Set<string>();
    for (const user of users) {
      const place = slotPlaceOf(user);
      if (place !== undefined && !usable.has(place.backingNode)) lost.add(place.backingNode);
    }
    const isNew = [...lost].some((id) => !this.lost.has(id));
    this.lost = lost;
    if (!isNew || context.checkInstances === undefined) return;
    const { checkInstances } = context;
    context.tasks.run(`check the nodes of ${this.owner}`, async () => {
      try {
        await checkInstances();
      } catch (error) {
        context.log.warn('The nodes of a lost backing node could not be checked; the next listing does', { error });
      }
    });
  }
}
