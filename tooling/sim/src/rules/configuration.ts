/** Safety 12, configuration: a new configuration stops only what it changes. */

import type { Rule, CheckerView } from './rule.js';
import { textOf } from './values.js';

const POOL = /^\/nodepool\/components\/pool\/[^/]+$/;

/** A pool leaves the registry only if its launcher ends or its provider is changed. */
export function poolsOutliveConfigurations(view: CheckerView): Rule {
  return {
    number: 'S12',
    writing(ops, launcher) {
      for (const op of ops) {
        if (op.type !== 'delete' || !POOL.test(op.path)) continue;
        const provider = textOf(view.znode(op.path)?.['provider_name']);
        if (view.keepsProvider(launcher, provider))
          return `a pool of ${provider} was stopped, though nothing of it changed`;
      }
      return undefined;
    },
  };
}
