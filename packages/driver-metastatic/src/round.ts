/** One round of the allocator: which slots are assigned and freed, at most one change for each backing node. */

import type { BackingData, DriverError, SlotUse } from '@nodepool/core';
import { assignSlots, placeOf, type Backing, type Placement, type PlacesByNode, type SlotWant } from './slots.js';

/** Comes after the ids of requests. */
const LAST = '~';

/** A launch that waits for a slot. */
export interface Waiter extends SlotWant {
  readonly resolve: (placement: Placement) => void;
  readonly reject: (error: DriverError) => void;
  readonly onRetry: ((error: DriverError) => void) | undefined;
}

/** A deletion that waits until its slot is free. */
export interface PendingFree {
  readonly use: Pick<SlotUse, 'node' | 'attempt'>;
  readonly resolve: () => void;
}

/** The changes of one backing node in one round. */
export interface Change {
  readonly backing: Backing;
  readonly assigned: Map<number, Waiter>;
  readonly freed: Set<number>;
  /** True if the last node leaves the backing node without a record of its slot. */
  becomesIdle: boolean;
  failure: string | undefined;
}

export interface RoundState {
  readonly backings: readonly Backing[];
  readonly places: PlacesByNode;
  /** Backing nodes that get further nodes. */
  readonly usable: readonly Backing[];
  readonly waiters: Iterable<Waiter>;
  /** The requests of nodes in launch, by node; their ids begin with the priority. */
  readonly requests: ReadonlyMap<string, string>;
  /** Launches without a slot that are not among the waiters, such as those of other launchers, by node. */
  readonly others: ReadonlyMap<string, Pick<SlotWant, 'label'>>;
  readonly frees: Iterable<PendingFree>;
  /** Slots whose nodes do not exist any more. */
  readonly orphans: readonly Placement[];
  /** Reasons by id of backing nodes that failed a check of their login. */
  readonly failures: ReadonlyMap<string, string>;
  /** Returns false for a backing node that cannot be written at the moment. */
  readonly isWritable: (backing: Backing) => boolean;
}

export interface Round {
  readonly changes: readonly Change[];
  /** Launches that have a slot already. */
  readonly placed: ReadonlyMap<Waiter, Placement>;
  /** Deletions whose slot no record has. */
  readonly freed: readonly PendingFree[];
  /** The nodes of others for whose launches a slot remains free. */
  readonly reserved: readonly string[];
}

export function planRound(state: RoundState): Round {
  const { backings, places, usable, failures, isWritable } = state;
  const changes = new Map<string, Change>();
  const changeOf = (backing: Backing): Change => {
    const change = changes.get(backing.id) ?? {
      backing,
      assigned: new Map<number, Waiter>(),
      freed: new Set<number>(),
      becomesIdle: false,
      failure: undefined,
    };
    changes.set(backing.id, change);
    return change;
  };
  const freed: PendingFree[] = [];
  for (const pending of state.frees) {
    const place = placeOf(places, pending.use);
    if (place === undefined) freed.push(pending);
    else if (place.backing.data.used.has(place.slot)) {
      if (isWritable(place.backing)) changeOf(place.backing).freed.add(place.slot);
    } else {
      // A slot that only the record of its node names becomes free with that record.
      freed.push(pending);
      const { backing, slot } = place;
      const isLast = [...backing.used.keys()].every((each) => each === slot);
      if (isLast && backing.damage === undefined && isWritable(backing)) changeOf(backing).becomesIdle = true;
    }
  }
  for (const { backing, slot } of state.orphans) {
    if (backing.data.used.has(slot) && isWritable(backing)) changeOf(backing).freed.add(slot);
  }
  for (const backing of backings) {
    const failure = failures.get(backing.id);
    if (failure !== undefined && !backing.data.failed && isWritable(backing)) changeOf(backing).failure = failure;
  }
  const placed = new Map<Waiter, Placement>();
  const unplaced: Waiter[] = [];
  for (const waiter of state.waiters) {
    const place = placeOf(places, waiter.use);
    if (place === undefined) unplaced.push(waiter);
    else placed.set(waiter, place);
  }
  // In the order of their requests, and last those that keep nodes ready. All launchers use the same order: two of them
  // whose requests need several nodes each would otherwise wait for the slots of each other.
  const rankOf = (node: string): string => `${state.requests.get(node) ?? LAST}/${node}`;
  const wants = [
    ...unplaced.map((waiter) => ({
      rank: rankOf(waiter.use.node),
      node: waiter.use.node,
      label: waiter.label,
      waiter,
    })),
    ...[...state.others].map(([node, { label }]) => ({ rank: rankOf(node), node, label, waiter: undefined })),
  ].sort((one, other) => (one.rank < other.rank ? -1 : 1));
  const open = usable.filter((each) => isWritable(each) && !failures.has(each.id));
  const reserved: string[] = [];
  for (const { want, backing, slot } of assignSlots(wants, open)) {
    if (want.waiter === undefined) reserved.push(want.node);
    else changeOf(backing).assigned.set(slot, want.waiter);
  }
  return { changes: [...changes.values()], placed, freed, reserved };
}

/** Returns the data of the backing node after the change. `now`: unix milliseconds. */
export function dataAfter({ backing, assigned, freed, becomesIdle, failure }: Change, now: number): BackingData {
  const used = new Map([...backing.data.used].filter(([slot]) => !freed.has(slot)));
  for (const [slot, { use }] of assigned) used.set(slot, use);
  const isIdle = used.size === 0 && (freed.size > 0 || becomesIdle);
  return {
    ...backing.data,
    used,
    ...(failure === undefined ? {} : { failed: true, reason: failure }),
    idle: isIdle ? now / 1000 : backing.data.idle,
  };
}
