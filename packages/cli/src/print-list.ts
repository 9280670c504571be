import type { CorruptRecord, RecordList } from '@nodepool/store';
import { printable } from '@nodepool/core';
import { formatAge, isPoolAt, nodeListOf, poolOutages, unresolvedFailure } from '@nodepool/store';
import type { ListFormat, Output, StoreContext } from './command-context.js';
import { PLAIN } from './display.js';
import { formatList } from './lists/format-list.js';

export function printList(out: Output, list: RecordList, format: ListFormat, names?: readonly string[]): void {
  if (format === 'name' && list.rows.length === 0) return;
  out.print(formatList(list, format, out.display?.() ?? PLAIN, names));
}

/** Prints a note for each record that cannot be read, since no list contains it. */
export function noteCorrupt(out: Output, corrupt: Iterable<CorruptRecord>): void {
  for (const { path, reason } of corrupt) out.note(`not listed: ${path} cannot be read: ${reason}`);
}

/** Prints a note for each provider with machines that are out of service: they have no ready nodes to be listed. */
export function noteOutages({ store, out }: StoreContext): void {
  const all = [...store.components.pools()];
  const byProvider = new Map<string, Set<string>>();
  for (const { provider_name: provider, name } of all) {
    const machines = byProvider.get(provider) ?? new Set();
    // Other launchers keep nodes of a machine ready that only some cannot use.
    const down = poolOutages(all.filter((pool) => isPoolAt(pool, { provider, pool: name }))).filter(
      ({ onlyFor }) => onlyFor.length === 0,
    );
    for (const { machine } of down) byProvider.set(provider, machines.add(machine));
  }
  for (const [provider, { size }] of byProvider) {
    const machines = size === 1 ? '1 machine is' : `${size} machines are`;
    out.note(printable(`${machines} out of service, see: nodepool info ${provider}`));
  }
}

/** Prints a note for each failed build that no newer build replaces, with its log. */
export function noteFailedBuilds({ store, clock, out }: StoreContext): void {
  for (const image of store.images.images()) {
    const failure = unresolvedFailure(store.images, image);
    if (failure === undefined) continue;
    const { time, message, log, builder } = failure;
    const where = log === null ? '' : `; its log is ${log} on ${builder ?? 'an unknown builder'}`;
    const age = formatAge(clock.now() / 1000 - time);
    out.note(printable(`the last build of image ${image} failed ${age} ago: ${message}${where}`));
  }
}

/** Prints the current row of a node, or only the headers if the node does not exist. */
export async function printNode({ store, clock, out, interrupted }: StoreContext, id: string): Promise<void> {
  const entry = await store.nodes.read(id, { signal: interrupted });
  const list = nodeListOf(entry === undefined ? [] : [entry], { columns: 'short', now: clock.now() });
  printList(out, list, 'pretty');
}
