/** Tests of the pools that may serve a request. */

import { expect, it } from '@jest/globals';
import { silentLogger } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import type { Change, ComponentEntry, ComponentStore, PoolComponentData } from '@nodepool/store';
import { CandidatePools } from '../src/pool/candidate-pools.js';

it('are cached for a limited number of label sets, because requestors may name any labels', () => {
  const registry: Pick<ComponentStore, 'complete' | 'onChange' | 'pools' | 'returningPools'> = {
    complete: true,
    onChange: () => () => undefined,
    pools: () => [],
    returningPools: () => [],
  };
  const candidates = new CandidatePools(registry as ComponentStore, new VirtualClock(), silentLogger);
  const first = candidates.having(['label-0']);
  expect(candidates.having(['label-0'])).toBe(first);
  for (let index = 1; index < 20_000; index += 1) candidates.having([`label-${index}`]);
  expect(candidates.having(['label-0'])).not.toBe(first);
  candidates.stop();
});

it('decisions depend on a new pool and on a change of one, but not on its registration or its first run', () => {
  let change: (change: Change<ComponentEntry>) => void = () => undefined;
  const registry: Pick<ComponentStore, 'complete' | 'onChange' | 'pools' | 'returningPools'> = {
    complete: true,
    onChange: (listener) => {
      change = listener;
      return () => undefined;
    },
    pools: () => [],
    returningPools: () => [],
  };
  const candidates = new CandidatePools(registry as ComponentStore, new VirtualClock(), silentLogger);
  const seen: boolean[] = [];
  candidates.onChange((isDecisive) => seen.push(isDecisive));
  const pool: PoolComponentData = {
    ...{ kind: 'pool', hostname: 'host', version: '1', model_api: 0, state: 'initializing' },
    ...{ id: 'own', name: 'main', provider_name: 'demo', supported_labels: ['small'], priority: 100, paused: false },
  };
  const entryOf = (component: PoolComponentData): ComponentEntry => ({ path: '/p', session: 1n, component });
  candidates.add(pool);
  change({ id: '0', before: undefined, after: entryOf({ ...pool }) });
  change({ id: '0', before: entryOf(pool), after: entryOf({ ...pool, state: 'running' }) });
  expect(seen).toEqual([true, false, false]);
  const running: PoolComponentData = { ...pool, state: 'running' };
  change({ id: '0', before: entryOf(running), after: entryOf({ ...running, paused_labels: ['small'] }) });
  change({ id: '1', before: undefined, after: entryOf({ ...running, id: 'other' }) });
  change({ id: '1', before: entryOf({ ...running, id: 'other' }), after: undefined });
  expect(seen).toEqual([true, false, false, true, true, true]);
  candidates.stop();
});
