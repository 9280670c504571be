/** Pods that the cluster takes away, as a list shows them. */

import { expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { objectOf } from '../src/client/objects.js';
import { disruptionOf } from '../src/pod-state.js';

const END = '2026-01-01T00:00:30Z';
const TARGET = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' };

function disruption(status: JsonObject, deletionTimestamp?: string): ReturnType<typeof disruptionOf> {
  const metadata = { name: 'pod', ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) };
  return disruptionOf(objectOf({ metadata, status }));
}

it.each([
  ['was evicted by its kubelet', { phase: 'Failed', reason: 'Evicted' }],
  ['was on a node that shuts down', { phase: 'Failed', reason: 'NodeShutdown' }],
  ['is the target of a disruption', { phase: 'Running', conditions: [TARGET] }],
])('a pod that %s is taken away', (_what, status) => {
  expect(disruption(status)).toEqual({});
});

it('a pod that is preempted ends after its grace period', () => {
  expect(disruption({ phase: 'Running', conditions: [TARGET] }, END)).toEqual({ endsAt: Date.parse(END) });
});

it.each([
  ['runs', { phase: 'Running' }],
  ['has failed by itself', { phase: 'Failed', reason: 'Error' }],
  ['is no target any more', { phase: 'Running', conditions: [{ ...TARGET, status: 'False' }] }],
  ['has no status', {}],
])('a pod that %s is not taken away', (_what, status) => {
  expect(disruption(status, END)).toBeUndefined();
});
