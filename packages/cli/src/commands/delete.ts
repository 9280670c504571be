/** `nodepool delete ID`: marks a node for deletion by a launcher. */

import type { Store } from '@nodepool/store';
import { changeBackingNode } from '../backing-node.js';
import type { StoreContext } from '../command-context.js';
import { lockNode } from '../lock-node.js';
import { parseNodeId } from '../node-id.js';
import { printNode } from '../print-list.js';
import { waitUntil } from '../wait.js';

export interface DeleteOptions {
  /** Waits until the node is deleted. */
  readonly now: boolean;
  /** Takes the node away from a durable lease. */
  readonly breakLease: boolean;
}

/** Marks the node and prints its row. Rejects with `CommandError` if the node is busy or does not exist. */
export async function deleteNode(context: StoreContext, nodeId: string, options: DeleteOptions): Promise<void> {
  const { store, out } = context;
  const id = parseNodeId(nodeId);
  const { provider, wasDeleting } = await markDeleting(context, id, options);
  if (!options.now) {
    out.note(
      wasDeleting
        ? `node ${id} is already being deleted by a launcher; \`nodepool explain node ${id}\` shows why it takes long`
        : `node ${id} will be deleted by a launcher of provider ${provider ?? '(none)'}`,
    );
    await printNode(context, id);
    return;
  }
  if (!isServed(store, provider)) {
    out.note(`no launcher that serves provider ${provider ?? '(none)'} is registered: the node stays until one is`);
  }
  await waitUntilGone(context, [id]);
  out.note(`node ${id} is deleted`);
  await printNode(context, id);
}

/** Marks the node, unless a launcher already deletes it. A backing node without nodes is taken from its owner. */
async function markDeleting(
  context: StoreContext,
  id: string,
  options: DeleteOptions,
): Promise<{ readonly provider: string | null; readonly wasDeleting: boolean }> {
  const known = context.store.nodes.get(id);
  if (known?.node.state === 'deleting' && known.locked) return { provider: known.node.provider, wasDeleting: true };
  const idle = await changeBackingNode(context, id, async ({ handle, slots, isComplete }) => {
    if (slots.used.size > 0 || slots.label === null || !isComplete) return undefined;
    await handle.unlock({ state: 'deleting' }, { signal: context.interrupted });
    return { provider: handle.node.provider, wasDeleting: false };
  });
  if (idle !== undefined) return idle;
  const handle = await lockNode(context, id, options);
  const { provider } = handle.node;
  await handle.release({ state: 'deleting' });
  return { provider, wasDeleting: false };
}

/** Resolves once all of these nodes are deleted; prints which nodes it waits for. */
async function waitUntilGone({ store, out, interrupted }: StoreContext, ids: readonly string[]): Promise<void> {
  let said = '';
  const look = (): true | undefined => {
    const left = ids.flatMap((id) => store.nodes.get(id) ?? []);
    if (left.length === 0) return true;
    const waitingFor = left
      .map((entry) => `${entry.id} (${entry.node.state}${entry.locked ? ', locked by a launcher' : ''})`)
      .join(', ');
    if (waitingFor !== said) out.note(`waiting until the cloud has deleted: ${waitingFor}`);
    said = waitingFor;
    return undefined;
  };
  await waitUntil(look, (listener) => store.nodes.onChange(listener), interrupted);
}

function isServed(store: Store, provider: string | null): boolean {
  for (const pool of store.components.pools()) if (pool.provider_name === provider) return true;
  return false;
}
