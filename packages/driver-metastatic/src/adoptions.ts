/** Takes over the nodes of fulfilled backing requests. */

import {
  printBackingData,
  type BackingNodes,
  type Call,
  type Logger,
  type Node,
  type NodeRequest,
} from '@nodepool/core';
import type { BackingSettings } from './config.js';
import { requestDataOf } from './demand.js';
import type { IsolatedWork } from './isolated-work.js';

export interface AdoptionOptions {
  readonly backing: BackingNodes;
  readonly owner: string;
  readonly settings: ReadonlyMap<string, BackingSettings>;
  readonly work: IsolatedWork;
  readonly log: Logger;
}

export class Adoptions {
  constructor(private readonly options: AdoptionOptions) {}

  /** Takes over all nodes that are due. */
  async adoptAll(call: Call, now: number): Promise<void> {
    const { backing, settings, work } = this.options;
    const adoptions = backing.requests().flatMap((request) => {
      const label = requestDataOf(request, settings)?.label;
      const known = label === undefined ? undefined : settings.get(label);
      if (request.state !== 'fulfilled' || label === undefined || known === undefined) return [];
      return work.isWaiting(request.id) ? [] : [this.adopt(request, { label, slots: known.slots, now, call })];
    });
    await Promise.all(adoptions);
  }

  private async adopt(
    request: NodeRequest,
    { label, slots, now, call }: { readonly label: string; readonly slots: number; now: number; call: Call },
  ): Promise<void> {
    const { backing, owner, work, log } = this.options;
    const [node_id] = request.nodes;
    const fields = { node_id, label, node_request_id: request.id };
    const userData = (node: Node): string =>
      printBackingData({
        owner,
        label,
        slots,
        failed: false,
        reason: null,
        launched: node.created_time ?? now / 1000,
        idle: null,
        used: new Map(),
      });
    const what = 'A backing node could not be taken over';
    const isHeld = await work.run(request.id, what, fields, () => backing.adopt(request, userData, call));
    // Another launcher has taken it over if the result is false.
    if (isHeld === true) log.info('Took over a backing node', fields);
  }
}
