/** Changes backing nodes, whose durable lock stays with the provider that has divided them into slots. */

import { providerOfBackingOwner, recordsSlotsInUse } from '@nodepool/core';
import { backingSlots, type BackingSlots, type NodeHandle } from '@nodepool/store';
import { CommandError, type StoreContext } from './command-context.js';

/** Number of attempts to write a record that launchers change at the same time. */
const MAX_ATTEMPTS = 10;

/** A backing node in one version of its record. */
export interface BackingNode {
  readonly handle: NodeHandle;
  readonly slots: BackingSlots;
  /** True if the record shows all slots in use. */
  readonly isComplete: boolean;
}

/**
 * Calls `change` with a backing node, which writes to the version that was read, again if a launcher was faster.
 * Resolves with undefined if the node is not a backing node that its owner has locked.
 */
export async function changeBackingNode<T>(
  { store, interrupted }: StoreContext,
  id: string,
  change: (node: BackingNode) => Promise<T>,
): Promise<T | undefined> {
  const options = { signal: interrupted };
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const holder = await store.nodes.holder(id, options);
    const owner = holder?.persistent === true ? holder.identifier : '';
    if (providerOfBackingOwner(owner) === undefined) return undefined;
    const entry = await store.nodes.read(id, options);
    const handle = await store.nodes.adopt(id, owner, { takeOver: false, ...options });
    if (entry === undefined || handle?.record.version !== entry.version) continue;
    const slots = backingSlots(store.nodes, entry);
    if (slots?.owner !== owner) return undefined;
    try {
      return await change({ handle, slots, isComplete: recordsSlotsInUse(entry.node.user_data) });
    } catch (error) {
      if (!isOvertaken(error)) throw error;
    }
  }
  throw new CommandError(`node ${id} is busy: launchers assign and free its slots; try again`);
}

function isOvertaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'lost-ownership';
}
