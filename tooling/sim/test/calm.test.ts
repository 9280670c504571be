/**
 * Runs without faults, or with one permanent fault, pass. Otherwise a violation by a mutated launcher would prove
 * nothing.
 */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS, simulate } from '../src/index.js';

const SEEDS = 6;

it('all rules, known gaps included, where a single launcher has no trouble', async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await simulate({ seed, fault: 'nothing', launchers: 1, patienceMs: 600_000 });
    expect({ seed, violation }).toEqual({ seed, violation: undefined });
  }
});

it('all rules where several launchers have no trouble', async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await simulate({ seed, fault: 'nothing', without: KNOWN_GAPS, patienceMs: 600_000 });
    expect({ seed, violation }).toEqual({ seed, violation: undefined });
  }
});

it('all rules where the cloud has less room than the pools', async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await simulate({ seed, fault: 'quota', without: KNOWN_GAPS });
    expect({ seed, violation }).toEqual({ seed, violation: undefined });
  }
});

it('that no request fails or waits for a cloud that refuses while another one has room', async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await simulate({ seed, fault: 'refusals', without: KNOWN_GAPS });
    expect({ seed, violation }).toEqual({ seed, violation: undefined });
  }
});

it('that a driver which never does what it shall delays nobody but its own provider', async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await simulate({ seed, fault: 'driver', without: KNOWN_GAPS });
    expect({ seed, violation }).toEqual({ seed, violation: undefined });
  }
});
