/** The ready nodes of a provider, as its cloud or the checks of its machines show them. */

import type { Node, NodeData } from '@nodepool/core';

export interface ReadyNodes {
  /**
   * Returns true if a ready node may be handed out for the label, according to the latest check of its machine or the
   * latest listing of its cloud.
   */
  isUsable(node: Node, label: string): boolean;
  /** Returns true if the latest listing of the cloud shows that a ready node is lost. */
  isLost(node: Node): boolean;
  /** Checks a node before it is handed out: its machine, or the instances, if the latest check or list is too old. */
  verify(node: Node): Promise<NodeCheck>;
}

export type NodeCheck =
  /** `change` adapts the record to what the check of the machine has found, e.g. other host keys. */
  | { readonly kind: 'usable'; readonly change: Partial<NodeData> }
  | { readonly kind: 'unusable'; readonly reason: string };
