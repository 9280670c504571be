/** The rule of suspended deletions. */

import type { CheckerView, Rule } from './rule.js';

const SUSPENSIONS = '/nodepool/suspensions';
/** Time for calls that were made before the suspension was known (ms). */
const GRACE_MS = 5000;

/**
 * Safety 13: while deletions are suspended, an instance is deleted only if a record names it, or if its node was
 * created after the suspension.
 */
export function nothingIsDeletedInDoubt(view: CheckerView): Rule {
  /** Instances whose deletion was in order, and may be repeated. */
  const begun = new Set<string>();
  return {
    number: 'S14',
    deleting({ id, tags }) {
      if (begun.has(id)) return undefined;
      const provider = encodeURIComponent(tags['nodepool_provider_name'] ?? '');
      for (const scope of ['installation', `provider-${provider}`]) {
        const suspension = view.znode(`${SUSPENSIONS}/${scope}`);
        if (suspension === undefined) continue;
        const { since, nextNode } = suspension;
        if (typeof since === 'number' && view.wallClock() - since * 1000 < GRACE_MS) continue;
        if (typeof nextNode === 'string' && (tags['nodepool_node_id'] ?? '') >= nextNode) continue;
        for (const { data } of view.observed.nodes.values()) if (data['external_id'] === id) begun.add(id);
        if (begun.has(id)) return undefined;
        return `instance ${id} was deleted without a record that names it, while deletions are suspended`;
      }
      begun.add(id);
      return undefined;
    },
  };
}
