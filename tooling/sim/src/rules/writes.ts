/** Rules about writes: safety 6 and 11, and the number of writes. */

import { isDeepStrictEqual } from 'node:util';
import type { TransactionOp } from '@nodepool/zookeeper';
import { MIN_READY_REQUESTOR, type JsonObject } from '@nodepool/core';
import type { Seen, SeenChange } from '../observed.js';
import type { Rule, CheckerView } from './rule.js';
import { LAUNCH_TEST } from './images.js';
import { BACKING_OWNER } from './slots.js';

/** Path of a node's or request's znode. */
const RECORD = /^\/nodepool\/(nodes|requests)\/[^/]+$/;
const REQUEST = /^\/nodepool\/requests\//;
/** Requests for `min-ready` nodes, which launchers delete without a check, like any requestor. */
const OWN_REQUEST = /^\/nodepool\/requests\/900-/;
/** Requestors that are launchers. */
const OWN_REQUESTORS: ReadonlySet<unknown> = new Set([MIN_READY_REQUESTOR, BACKING_OWNER, LAUNCH_TEST]);
/** Unknown fields that other programs write into records. */
const FOREIGN_FIELDS = ['span_info', 'requestor_data', 'x_future'];

/** Safety 6: a process that has lost the lock writes nothing. */
export function writesAreOwned({ observed }: CheckerView): Rule {
  const isOwn = (path: string): boolean => {
    const request = observed.requests.get(path.split('/').at(-1) ?? '');
    // The deletion of a request that ended with its session changes nothing.
    return OWN_REQUEST.test(path) || request === undefined || OWN_REQUESTORS.has(request.data['requestor']);
  };
  return {
    number: 'S6',
    writing(ops) {
      const fenced = ops.some((op) => isFence(op));
      for (const op of ops) {
        if (op.type !== 'set' && op.type !== 'delete') continue;
        if (!RECORD.test(op.path) || (op.type === 'delete' && REQUEST.test(op.path) && isOwn(op.path))) continue;
        const versioned = op.version !== undefined && op.version >= 0;
        if (!versioned && !fenced) return `${op.path} is written without a version or the proof of a lock`;
      }
      return undefined;
    },
    committed({ nodes, requests }) {
      for (const { id, before, after, by } of requests) {
        const requestor = before?.data['requestor'];
        const theirs = before !== undefined && !OWN_REQUESTORS.has(requestor);
        if (theirs && after === undefined && by === 'launcher')
          return `a launcher removed request ${id} of a requestor`;
      }
      return unlockedWrite('node', nodes) ?? unlockedWrite('request', requests);
    },
  };
}

/** Returns true for an operation that makes the transaction fail if the lock is lost. */
function isFence(op: TransactionOp): boolean {
  return (op.type === 'check' || op.type === 'delete') && op.path.includes('__lock__');
}

function unlockedWrite(kind: string, changes: readonly SeenChange[]): string | undefined {
  for (const { id, before, after, by } of changes) {
    // Requestors do not fence their writes.
    if (before === undefined || after === undefined || by !== 'launcher') continue;
    // A launcher tells the holder of a node that its instance is lost, so it writes this field without the lock.
    if (kind === 'node' && isOnlyInterrupted(before, after)) continue;
    if (before.holder === undefined && after.holder === undefined) return `${kind} ${id} was changed without its lock`;
  }
  return undefined;
}

/** Returns true if nothing but the loss of the instance differs. */
export function isOnlyInterrupted(before: Seen, after: Seen | undefined): boolean {
  if (after === undefined) return false;
  return isDeepStrictEqual(withoutInterruption(before.data), withoutInterruption(after.data));
}

function withoutInterruption({ interruption: _interruption, ...rest }: JsonObject): JsonObject {
  return rest;
}

/** Time in which fruitless acceptances are counted (ms). */
const ACCEPTANCES_WINDOW_MS = 10_000;
/** Limit of the fruitless acceptances of one request in that time: two attempts of each pool of three launchers. */
const MAX_FRUITLESS = 30;

/**
 * Writes 1: launchers do not accept a request again and again to set it back to `requested` each time. A pool that
 * declines the request has made progress.
 */
export function waitingRequestsRest(view: CheckerView): Rule {
  /** Times of the latest fruitless acceptances by request, milliseconds since the start. */
  const returns = new Map<string, number[]>();
  return {
    number: 'W1',
    committed({ requests }) {
      for (const { id, before, after, by } of requests) {
        if (after === undefined) returns.delete(id);
        if (before === undefined || after === undefined || by !== 'launcher' || !isReturned(before, after)) continue;
        const recent = (returns.get(id) ?? []).filter((at) => view.now() - at < ACCEPTANCES_WINDOW_MS);
        recent.push(view.now());
        returns.set(id, recent);
        if (recent.length > MAX_FRUITLESS)
          return `request ${id} was accepted ${recent.length} times in 10 s and not served`;
      }
      return undefined;
    },
    forget: () => returns.clear(),
  };
}

function isReturned(before: Seen, after: Seen): boolean {
  const isBack = before.data['state'] === 'pending' && after.data['state'] === 'requested';
  return isBack && text(before.data, 'declined_by') === text(after.data, 'declined_by');
}

/** Safety 11: unknown fields are preserved. */
export function unknownFieldsSurvive(_: CheckerView): Rule {
  return {
    number: 'S11',
    committed({ nodes, requests }) {
      for (const { id, before, after, by } of [...nodes, ...requests]) {
        if (before === undefined || after === undefined || by !== 'launcher') continue;
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
