/** The life of a backing node: whether it gets further nodes, and when it is released. Pure functions. */

import type { BackingNode } from '@nodepool/core';
import type { BackingSettings } from './config.js';
import { launchedAt, type Backing } from './slots.js';

/** Returns why nothing on a backing node can be used any more, its present nodes included; otherwise undefined. */
export function unusableOf({ lost, node }: BackingNode): string | undefined {
  if (lost !== undefined) return lost;
  return node.state === 'in-use' || node.state === 'hold' ? undefined : `its state is ${node.state}`;
}

/** Returns why a backing node gets no further nodes; undefined if it does. `now`: unix milliseconds. */
export function unusableReason(
  backing: Backing,
  settings: BackingSettings | undefined,
  now: number,
): string | undefined {
  const { held, data } = backing;
  const lost = unusableOf(held);
  if (lost !== undefined) return lost;
  if (held.unverified !== undefined) return held.unverified;
  if (held.node.state === 'hold') return 'an operator holds it';
  if (data.failed) return data.reason ?? 'it is marked as failed';
  if (settings === undefined) return `label ${data.label} is not configured any more`;
  if (now >= expiresAt(backing, settings)) return 'it has reached its max-age';
  return undefined;
}

/** Unix milliseconds at which a backing node is too old for further nodes; `Infinity` if it never is. */
export function expiresAt(backing: Backing, { maxAgeMs }: BackingSettings): number {
  return launchedAt(backing) * 1000 + maxAgeMs;
}

/**
 * Returns the unix milliseconds at which a backing node is released; `Infinity` while it has nodes. `settings` is
 * undefined if no launcher serves its label any more. `yields` is true for a node that another label needs.
 */
export function releasedAt(
  backing: Backing,
  settings: BackingSettings | undefined,
  now: number,
  yields: boolean,
): number {
  const { state } = backing.held.node;
  if (backing.held.unverified !== undefined) return Infinity;
  if (state === 'hold') return Infinity;
  // Its own provider deletes it as soon as it is unlocked.
  if (state !== 'in-use') return now;
  if (backing.used.size > 0) return Infinity;
  if (settings === undefined || yields || unusableReason(backing, settings, now) !== undefined) return now;
  const launched = launchedAt(backing) * 1000;
  // A node that was never used is idle since it was taken over.
  const idle = (backing.data.idle ?? backing.held.node.state_time) * 1000;
  const retained = Math.max(idle + settings.graceMs, launched + settings.minRetentionMs);
  return Math.min(retained, expiresAt(backing, settings));
}
