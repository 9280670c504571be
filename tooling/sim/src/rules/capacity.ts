/**
 * Rules for runs whose only faults are refused creations: no request fails because of them, and none waits while a pool
 * has capacity.
 */

import { MAX_WAIT_MS, SPARE_LABELS } from '../site.js';
import type { JsonObject } from '@nodepool/core';
import type { Rule, CheckerView } from './rule.js';

/** Longest wait for nodes of a healthy provider with capacity: several launches in sequence (ms). */
const MAX_SERVICE_WAIT_MS = 90_000;

/** C1: while a pool has all labels of a request and may recover before `max-wait`, the request does not fail. */
export function refusalsFailNoRequest(view: CheckerView): Rule {
  return {
    number: 'C1',
    committed: ({ requests }) => {
      if (!view.onlyRefusals) return undefined;
      for (const { id, before, after } of requests) {
        if (after?.data['state'] !== 'failed' || before?.data['state'] === 'failed') continue;
        const labels = labelsOf(after.data);
        const isServed = view.observed.pools().some((pool) => labels.every((label) => has(pool, label)));
        const ageMs = ageOf(after.data, view);
        if (isServed && ageMs < MAX_WAIT_MS) return `request ${id} failed after ${Math.round(ageMs / 1000)} s`;
      }
      return undefined;
    },
  };
}

/** C2: a request for which a healthy provider has capacity does not wait. */
export function capacityIsUsed(view: CheckerView): Rule {
  return {
    number: 'C2',
    committed: () => {
      if (!view.onlyRefusals) return undefined;
      for (const { id, data } of view.observed.requests.values()) {
        const isWaiting = data['state'] === 'requested' || data['state'] === 'pending';
        const isSpared = labelsOf(data).every((label) => SPARE_LABELS.has(label));
        if (!isWaiting || !isSpared || typeof data['provider'] === 'string') continue;
        const ageMs = ageOf(data, view);
        if (ageMs > MAX_SERVICE_WAIT_MS)
          return `request ${id} waits for ${Math.round(ageMs / 1000)} s, a pool has capacity`;
      }
      return undefined;
    },
  };
}

function labelsOf({ node_types: labels }: JsonObject): readonly string[] {
  return Array.isArray(labels) ? labels.map(String) : [];
}

function has({ supported_labels: labels }: JsonObject, label: string): boolean {
  return Array.isArray(labels) && labels.includes(label);
}

function ageOf({ created_time: created }: JsonObject, view: CheckerView): number {
  return view.wallClock() - (typeof created === 'number' ? created * 1000 : view.wallClock());
}
