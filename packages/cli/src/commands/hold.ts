/** `nodepool hold ID`: keeps a node for inspection. */

import { changeBackingNode } from '../backing-node.js';
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
  const comment = options.comment === undefined ? {} : { comment: options.comment };
  const used = await changeBackingNode(context, id, async ({ handle, slots }) => {
    await handle.update({ state: 'hold', ...comment }, { signal: context.interrupted });
    return slots.text;
  });
  if (used !== undefined) {
    context.out.note(
      `node ${id} is held. It is a backing node with slots, ${used}: it gets no further nodes and is not released, ` +
        `while its present nodes stay in use. Delete it with \`nodepool delete ${id}\` once it has none`,
    );
    await printNode(context, id);
    return;
  }
  const handle = await lockNode(context, id);
  const { state } = handle.node;
  if (state === 'deleting' || state === 'deleted') {
    await handle.release();
    throw new CommandError(`node ${id} cannot be held: its instance is being deleted (state ${state})`);
  }
  await handle.release({ state: 'hold', ...comment });
  context.out.note(`node ${id} is held; delete it with \`nodepool delete ${id}\` when it is no longer needed`);
  await printNode(context, id);
}
