/** The part of `ProviderContext` for drivers whose nodes are parts of nodes of other labels. */

import type { JsonValue } from '../model/json.js';
import type { Node } from '../model/node.js';
import type { NodeRequest } from '../model/request.js';
import type { Call } from './call.js';

/**
 * Requests, holds and releases backing nodes. All state is in the records: every launcher with the same owner sees the
 * same nodes and requests, and continues them after the death of another launcher.
 */
export interface BackingNodes {
  /**
   * Returns the nodes that the owner holds, as known at the moment, in the order of their ids. The lock decides: the
   * `user_data` of a node may be damaged.
   */
  held(): readonly BackingNode[];
  /** Returns the owner's requests, in the order of their ids. A fulfilled request waits for `adopt`. */
  requests(): readonly NodeRequest[];
  /** Returns the nodes of the provider itself, which are parts of backing nodes. */
  users(): readonly Node[];
  /** Returns true if a registered pool of the provider, of any launcher, has the label. */
  isServed(label: string): boolean;
  /**
   * Returns the largest number of nodes with the label that the pools of all launchers can have at the same time;
   * `Infinity` if one of them has no limit or none is known.
   */
  capacityOf(label: string): number;
  /** Resolves once the results of the other methods contain all writes that ended before the call. */
  refresh(call: Call): Promise<void>;
  /**
   * Changes the set of requests. Calls `decide` until no other launcher has changed the set since; the requests are
   * then created and removed together. A request that a launcher has accepted meanwhile is not removed.
   */
  plan(decide: () => BackingPlan, call: Call): Promise<void>;
  /**
   * Takes over the node of a fulfilled request, in one step: locks it for the owner, sets it to `in-use` with the data,
   * and removes the request. Resolves with false if the node cannot be taken any more; the request is removed then.
   */
  adopt(request: NodeRequest, userData: (node: Node) => JsonValue, call: Call): Promise<boolean>;
  /** Writes `user_data`. Resolves with false, changing nothing, if the node is not in this version any more. */
  update(node: BackingNode, userData: JsonValue, call: Call): Promise<boolean>;
  /**
   * Sets the node to `used` and unlocks it, after which its own provider deletes it. Resolves with false, changing
   * nothing, if the node is not in this version any more.
   */
  release(node: BackingNode, call: Call): Promise<boolean>;
  /** Calls the listener after each change of the results of this object. The returned function removes it. */
  onChange(listener: () => void): () => void;
}

/** A node that the owner holds. */
export interface BackingNode {
  readonly node: Node;
  /** Version of the record. */
  readonly version: number;
  /** Reason why the node cannot be used any more, e.g. because its cloud takes it away; undefined if it can. */
  readonly lost: string | undefined;
  /**
   * Reason why it is not known whether the owner still holds the node, e.g. because the lock cannot be read; undefined
   * if it does. Such a node is not lost, but cannot be written.
   */
  readonly unverified: string | undefined;
}

/** A change of the set of requests. */
export interface BackingPlan {
  readonly create: readonly BackingDemand[];
  /** Ids of requests to remove. */
  readonly remove: readonly string[];
}

/** A request for one node. */
export interface BackingDemand {
  readonly label: string;
  /** `requestor_data` of the request. */
  readonly data: JsonValue;
}

/** Opens the backing nodes of an owner, e.g. `NodePool:metastatic:<provider>`: the identifier of their locks. */
export type OpenBackingNodes = (owner: string) => BackingNodes;
