/** Safety 12, of configurations: only what changed is stopped; what stays as it was goes on. */

import type { Rule, Sight } from './rule.js';
import { textOf } from './values.js';

const POOL = /^\/nodepool\/components\/pool\/[^/]+$/;

/** A pool leaves the registry when its launcher ends or its provider changed, and for no other reason. */
export function poolsOutliveConfigurations(sight: Sight): Rule {
  return {
    number: 'S12',
    writing(ops, launcher) {
      for (const op of ops) {
        if (op.type !== 'delete' || !POOL.test(op.path)) continue;
        const provider = textOf(sight.znode(op.path)?.['provider_name']);
        if (sight.keepsProvider(launcher, provider))
          return `a pool of ${provider} was stopped, though nothing of it changed`;
      }
      return undefined;
    },
  };
}
