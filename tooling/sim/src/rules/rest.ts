/** The rules about what must happen in the end: liveness 1 to 4. */

import type { World } from '../world.js';
import { textOf } from './values.js';

export interface Unrest {
  readonly rule: string;
  readonly what: string;
}

/** What has not come to its end yet, one of each kind; none: everything has. */
export function unrest(world: World): readonly Unrest[] {
  return [requests(world), nodes(world), instances(world)].filter((found) => found !== undefined);
}

function requests({ checker, requestors }: World): Unrest | undefined {
  const wanted = new Set(requestors.map(({ request }) => request));
  for (const { id, data, holder } of checker.observed.requests.values()) {
    const state = textOf(data['state']);
    // An answered request whose requestor never knew of it concerns nobody here.
    if (!wanted.has(id) && (state === 'fulfilled' || state === 'failed')) continue;
    if (state === 'pending' && holder === undefined)
      return { rule: 'L3', what: `nobody takes the lost request ${id} over` };
    return { rule: 'L1', what: `request ${id} is still ${state}` };
  }
  if (requestors.some(({ done }) => !done)) return { rule: 'L1', what: 'a requestor is still at it' };
  return undefined;
}

function nodes({ checker }: World): Unrest | undefined {
  for (const { id, data, holder } of checker.observed.nodes.values()) {
    const state = textOf(data['state']);
    if (state === 'deleting') return { rule: 'L2', what: `node ${id} is still being deleted` };
    if (holder !== undefined) return { rule: 'L3', what: `node ${id} is still ${state} and locked by ${holder}` };
    if (state === 'hold') return { rule: 'L1', what: `node ${id} is still held` };
    if (state !== 'ready') return { rule: 'L2', what: `node ${id} is still ${state}` };
    const request = data['allocated_to'];
    if (typeof request === 'string' && !checker.observed.requests.has(request)) {
      return { rule: 'L3', what: `node ${id} is still allocated to the request ${request}, which is gone` };
    }
  }
  return undefined;
}

function instances({ checker, cloud }: World): Unrest | undefined {
  for (const { id, tags } of cloud.existingInstances()) {
    if (tags['theirs'] !== undefined) continue;
    const node = checker.observed.nodes.get(tags['nodepool_node_id'] ?? '');
    if (node?.data['external_id'] !== id) return { rule: 'L2', what: `instance ${id} is leaked` };
  }
  return undefined;
}
