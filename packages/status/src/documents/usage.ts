/** Pairs used amounts with their limits. */

import type { Resources } from '@nodepool/core';
import type { Usage } from '../client/model.js';

/** Returns the use of each resource, `instances` first, the others by name, without unlimited and unused ones. */
export function pairs({ used, limit }: { readonly used: Resources; readonly limit: Resources }): Usage[] {
  const names = new Set(['instances', ...[...Object.keys(limit), ...Object.keys(used)].sort()]);
  return [...names]
    .map((resource) => ({ resource, used: used[resource] ?? 0, limit: limit[resource] ?? null }))
    .filter(({ resource, used: amount, limit: most }) => resource === 'instances' || most !== null || amount > 0);
}
