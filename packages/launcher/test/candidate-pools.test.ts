/** Tests of the pools that may serve a request. */

import { expect, it } from '@jest/globals';
import { silentLogger } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import type { ComponentStore } from '@nodepool/store';
import { CandidatePools } from '../src/pool/candidate-pools.js';

it('are cached for a limited number of label sets, because requestors may name any labels', () => {
  const registry: Pick<ComponentStore, 'complete' | 'onChange' | 'pools'> = {
    complete: true,
    onChange: () => () => undefined,
    pools: () => [],
  };
  const candidates = new CandidatePools(registry as ComponentStore, new VirtualClock(), silentLogger);
  const first = candidates.having(['label-0']);
  expect(candidates.having(['label-0'])).toBe(first);
  for (let index = 1; index < 20_000; index += 1) candidates.having([`label-${index}`]);
  expect(candidates.having(['label-0'])).not.toBe(first);
  candidates.stop();
});
