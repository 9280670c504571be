/** `nodepool hold ID`: keeps a node for somebody to look at. */

import { RefusedError, type StoreContext } from '../command-context.js';
import { lockNode } from '../lock-node.js';
import { parseNodeId } from '../node-id.js';
import { printNode } from '../print-list.js';

export interface HoldOptions {
  /** Why, for others to read. */
  readonly comment: string | undefined;
}

/** Prints the row of the node afterwards. Rejects with `RefusedError` when the node is busy, is not there, or is being deleted. */
export async function hold(context: StoreContext, nodeId: string, options: HoldOptions): Promise<void> {
  const id = parseNodeId(nodeId);
  const handle = await lockNode(context, id);
  const { state } = handle.node;
  if (state === 'deleting' || state === 'deleted') {
    await handle.release();
    throw new RefusedError(`node ${id} cannot be held: its instance is being deleted (state ${state})`);
  }
  await handle.release({ state: 'hold', ...(options.comment === undefined ? {} : { comment: options.comment }) });
  context.out.note(`node ${id} is held; delete it with \`nodepool delete ${id}\` when it is no longer needed`);
  await printNode(context, id);
}
