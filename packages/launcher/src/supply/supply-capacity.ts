/** Decides if the machines of a pool can ever serve the labels of a request at the same time. */

import type { SuppliedMachine } from '@nodepool/core';

/** Machines with the same labels. */
interface Group {
  readonly labels: ReadonlySet<string>;
  slots: number;
  /** Indexes of the wanted labels that slots of the group are assigned to. */
  readonly assigned: number[];
}

/** Returns the reason why the machines can never serve all wanted labels at once; undefined if they can. */
export function describeSlotShortage(
  machines: Iterable<Pick<SuppliedMachine, 'labels' | 'slots'>>,
  wanted: readonly string[],
): string | undefined {
  const groups = [...groupsOf(machines)];
  for (const [index, label] of wanted.entries()) {
    if (assign(index, wanted, groups, new Set())) continue;
    const total = groups.reduce((sum, group) => sum + (group.labels.has(label) ? group.slots : 0), 0);
    const needed = wanted.filter((other) => other === label).length;
    return needed > total
      ? `it needs ${needed} nodes of label ${label}, and the machines have ${total}`
      : `the machines have too few nodes for labels ${[...new Set(wanted)].join(', ')} together`;
  }
  return undefined;
}

function groupsOf(machines: Iterable<Pick<SuppliedMachine, 'labels' | 'slots'>>): Iterable<Group> {
  const groups = new Map<string, Group>();
  for (const { labels, slots } of machines) {
    const key = JSON.stringify([...labels].sort());
    const group = groups.get(key) ?? { labels: new Set(labels), slots: 0, assigned: [] };
    group.slots += slots;
    groups.set(key, group);
  }
  return groups.values();
}

/** Assigns a slot to a wanted label. Moves earlier assignments to other groups if necessary (augmenting paths). */
function assign(index: number, wanted: readonly string[], groups: readonly Group[], visited: Set<Group>): boolean {
  for (const group of groups) {
    if (visited.has(group) || !group.labels.has(wanted[index] ?? '')) continue;
    visited.add(group);
    if (group.assigned.length < group.slots) {
      group.assigned.push(index);
      return true;
    }
    for (const [at, other] of group.assigned.entries()) {
      if (!assign(other, wanted, groups, visited)) continue;
      group.assigned[at] = index;
      return true;
    }
  }
  return false;
}
