import { deadlineSignal, TimerQueue, printable, type NodeData } from '@nodepool/core';
import { backingSlots, type NodeEntry, type NodeHandle, type Store } from '@nodepool/store';
import { CommandError, type StoreContext } from './command-context.js';

const LOCK_TIMEOUT_MS = 5000;

/**
 * Locks the node, waiting up to five seconds. Rejects with `CommandError` if the node is busy or does not exist. With
 * `breakLease`, takes over the lock of a durable lease, whose owner loses the node.
 */
export async function lockNode(
  { store, clock, interrupted }: StoreContext,
  id: string,
  { breakLease = false }: { readonly breakLease?: boolean } = {},
): Promise<NodeHandle> {
  const entry = await store.nodes.read(id, { signal: interrupted });
  if (entry === undefined) {
    throw new CommandError(`there is no node ${id}; \`nodepool list\` lists the existing ones`);
  }
  const holder = await store.nodes.holder(id, { signal: interrupted });
  if (holder?.persistent === true) {
    const owner = holder.identifier;
    const handle = breakLease ? await store.nodes.adopt(id, owner, { signal: interrupted }) : undefined;
    if (handle !== undefined) return handle;
    throw new CommandError(
      `node ${id} is busy: ${ownerOf(store, entry, owner)} \`nodepool delete ${id} --break-lease\``,
    );
  }
  const busy = new CommandError(
    `node ${id} is busy: ${holderOf(entry.node)} has held its lock for ${LOCK_TIMEOUT_MS / 1000} s; try again when it is ` +
      'unlocked, see `nodepool list --detail`',
  );
  const limited = deadlineSignal({
    timers: new TimerQueue(clock),
    signal: interrupted,
    deadline: clock.monotonic() + LOCK_TIMEOUT_MS,
    onDeadline: () => busy,
  });
  try {
    return await store.nodes.lock(id, { signal: limited.signal });
  } catch (error) {
    limited.signal.throwIfAborted();
    if (isGone(error)) throw new CommandError(`node ${id} was just deleted`, { cause: error });
    throw error;
  } finally {
    limited.unlink();
  }
}

/** Returns who has a node whose lock lasts without a program, up to the command that takes it away. */
function ownerOf({ nodes }: Pick<Store, 'nodes'>, entry: NodeEntry, owner: string): string {
  const slots = backingSlots(nodes, entry);
  if (slots?.owner === owner) {
    const label = slots.label === null ? '' : ` for label ${printable(slots.label)}`;
    return (
      `${printable(owner)} has divided it into slots${label}, ${slots.text}; with \`nodepool hold ${entry.id}\` it gets ` +
      'no further nodes, and can be deleted once it has none; to delete it at once, which interrupts its nodes, use'
    );
  }
  return (
    `it belongs to a durable lease of ${printable(owner)}, which lasts even if no program runs; ` +
    'release it there, or delete the node with'
  );
}

/** Returns the program that holds the lock of a node, as far as the record says. */
function holderOf({ state, launcher, allocated_to: request }: NodeData): string {
  const name = launcher === null ? 'its launcher' : `its launcher ${launcher}`;
  if (state === 'building') return `${name}, which launches it,`;
  if (state === 'deleting') return `${name}, which deletes it,`;
  return state === 'in-use' ? `the program that uses it for request ${request ?? '(unknown)'}` : 'another program';
}

/** Returns true if a node was deleted while its lock was awaited. */
export function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'lost-ownership' || error.code === 'no-node');
}
