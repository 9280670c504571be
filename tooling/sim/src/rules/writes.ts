/** Rules about writing: safety 6, 8 and 11. */

import type { TransactionOp } from '@nodepool/zookeeper';
import type { JsonObject } from '@nodepool/core';
import type { Seen, SeenChange } from '../observed.js';
import type { Rule, Sight } from './rule.js';
import { REQUESTORS_STATES, textOf } from './values.js';

/** A node's or a request's own znode. */
const RECORD = /^\/nodepool\/(nodes|requests)\/[^/]+$/;
/** Fields that other programs write into records and we know nothing of. */
const FOREIGN_FIELDS = ['span_info', 'x_future'];

/** Safety 6: whoever lost the lock writes nothing. */
export function writesAreOwned(_: Sight): Rule {
  return {
    number: 'S6',
    writing(ops) {
      const fenced = ops.some((op) => isFence(op));
      for (const op of ops) {
        if (op.type !== 'set' && op.type !== 'delete') continue;
        if (!RECORD.test(op.path)) continue;
        const versioned = op.version !== undefined && op.version >= 0;
        if (!versioned && !fenced) return `${op.path} is written without a version or the proof of a lock`;
      }
      return undefined;
    },
    committed({ nodes, requests }) {
      return unlockedWrite('node', nodes) ?? unlockedWrite('request', requests);
    },
  };
}

/** A transaction with one of these fails when the lock is not ours any more. */
function isFence(op: TransactionOp): boolean {
  return (op.type === 'check' || op.type === 'delete') && op.path.includes('__lock__');
}

function unlockedWrite(kind: string, changes: readonly SeenChange[]): string | undefined {
  for (const { id, before, after } of changes) {
    if (before === undefined || after === undefined || before.holder !== undefined || after.holder !== undefined)
      continue;
    // Requestors do not prove that they have the lock.
    if (REQUESTORS_STATES.has(after.data['state'])) continue;
    if (JSON.stringify(before.data) !== JSON.stringify(after.data)) return `${kind} ${id} was changed without its lock`;
  }
  return undefined;
}

/** Safety 8: launches do not exceed the limits of their pool. */
export function launchesFitTheirPool(sight: Sight): Rule {
  return {
    number: 'S8',
    committed({ nodes }) {
      for (const { id, before, after } of nodes) {
        if (before !== undefined || after?.data['state'] !== 'init') continue;
        const { provider, pool } = after.data;
        const limit = sight.maxServers(textOf(provider), textOf(pool));
        if (limit === undefined) continue;
        let count = 0;
        for (const { data } of sight.observed.nodes.values())
          if (data['provider'] === provider && data['pool'] === pool) count += 1;
        if (count > limit) return `with node ${id}, pool ${textOf(pool)} has ${count} nodes of ${limit}`;
      }
      return undefined;
    },
  };
}

/** Safety 11: fields that we do not know survive. */
export function unknownFieldsSurvive(_: Sight): Rule {
  return {
    number: 'S11',
    committed({ nodes, requests }) {
      for (const { id, before, after } of [...nodes, ...requests]) {
        if (before === undefined || after === undefined) continue;
        const lost = lostField(before, after);
        if (lost !== undefined) return `the field ${lost} of ${id} did not survive a write`;
      }
      return undefined;
    },
  };
}

function lostField(before: Seen, after: Seen): string | undefined {
  return FOREIGN_FIELDS.find(
    (field) => text(before.data, field) !== undefined && text(before.data, field) !== text(after.data, field),
  );
}

function text(data: JsonObject, field: string): string | undefined {
  const value = data[field];
  return value === undefined ? undefined : JSON.stringify(value);
}
