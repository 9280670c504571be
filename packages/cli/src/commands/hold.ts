/** `nodepool hold ID`: keeps a node for inspection. */

import { CommandError, type StoreContext } from '../command-context.js';
import { lockNode } from '../lock-node.js';
import { parseNodeId } from '../node-id.js';
import { printNode } from '../print-list.js';

export interface HoldOptions {
  /** The reason, for operators. */
  readonly comment: string | undefined;
}

/** Holds the node and prints its row. Rejects with `CommandError` if it is busy, being deleted, or does not exist. */
export async function hold(context: StoreContext, nodeId: string, options: HoldOptions): Promise<void> {
  const id = parseNodeId(nodeId);
  const handle = await lockNode(context, id);
  const { state } = handle.node;
  if (state === 'deleting' || state === 'deleted') {
    await handle.release();
    throw new CommandError(`node ${id} cannot be held: its instance is being deleted (state ${state})`);
  }
  await handle.release({ state: 'hold', ...(options.comment === undefined ? {} : { comment: options.comment }) });
  context.out.note(`node ${id} is held; delete it with \`nodepool delete ${id}\` when it is no longer needed`);
  await printNode(context, id);
}
