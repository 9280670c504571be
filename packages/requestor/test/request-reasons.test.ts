/** Tests of the reasons for the state of a request that has been accepted. */

import { expect, it } from '@jest/globals';
import { requestWith } from '@nodepool/core/testing';
import { requestReasons } from '../src/pools.js';
import { POOL } from './support/scripted-launcher.js';

it('a pending request whose labels no registered pool offers any more says so', () => {
  const reasons = (labels: readonly string[]): readonly string[] =>
    requestReasons(requestWith({ state: 'pending', node_types: labels }), [
      { ...POOL, kind: 'pool', state: 'running' },
    ]);
  expect(reasons(['small'])).toEqual(['a launcher has accepted the request and launches its nodes']);
  expect(reasons(['small', 'gone'])).toEqual([
    'a launcher works on the request, although no registered pool offers its labels now',
  ]);
});
