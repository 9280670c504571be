/** The ages at which ready nodes are replaced, and until which they are kept, according to their labels. */

import type { NodepoolConfig } from '@nodepool/config';
import type { Node } from '@nodepool/core';

/** Longest time (ms) before the end of a node at which its replacement is requested. */
const RENEWAL_LEAD_MS = 600_000;

/** The times of a node in milliseconds since the epoch; `Infinity` for an end that never comes. */
export interface NodeAges {
  /** Time at which the replacement of the node is requested. */
  readonly renewedAt: number;
  /** Time from which on the node is too old. */
  readonly expiresAt: number;
  /** Time until which the node is not deleted for its age, nor because no request needs it. */
  readonly keptUntil: number;
  /** The key that limits the age first. */
  readonly limit: 'max-age' | 'max-ready-age';
}

/**
 * Returns the ages of a ready node. The strictest label of the node decides; `min-retention-time` has priority over the
 * other keys.
 */
export function agesOf(node: Node, labels: NodepoolConfig['labels']): NodeAges {
  const readySince = node.state_time * 1000;
  const createdAt = (node.created_time ?? node.state_time) * 1000;
  let end = Infinity;
  let lifeMs = Infinity;
  let keptUntil = -Infinity;
  let limit: NodeAges['limit'] = 'max-ready-age';
  for (const label of node.type) {
    const { maxReadyAgeMs = Infinity, maxAgeMs = Infinity, minRetentionMs = 0 } = labels.get(label) ?? {};
    if (readySince + maxReadyAgeMs < end)
      [end, lifeMs, limit] = [readySince + maxReadyAgeMs, maxReadyAgeMs, 'max-ready-age'];
    if (createdAt + maxAgeMs < end) [end, lifeMs, limit] = [createdAt + maxAgeMs, maxAgeMs, 'max-age'];
    if (minRetentionMs > 0) keptUntil = Math.max(keptUntil, createdAt + minRetentionMs);
  }
  const expiresAt = Math.max(end, keptUntil);
  return { renewedAt: expiresAt - Math.min(RENEWAL_LEAD_MS, lifeMs / 2), expiresAt, keptUntil, limit };
}
