/** The calls that fault rules match, and the calls that a log counts. */

import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { CallLog, FaultPlan, type CloudCall } from '../src/index.js';

const call = (operation: string): CloudCall => ({ operation, method: 'GET', path: '/' });
const fault = { kind: 'hang', when: 'before' } as const;

describe('a fault rule', () => {
  it('affects the given number of calls of its group, after the given number of unaffected ones', () => {
    const plan = new FaultPlan(seededRandom(1));
    const active = plan.add({ on: 'compute', after: 1, times: 2, fault });
    const operations = ['compute.list', 'computer.list', 'compute.get', 'compute.list', 'compute.list'];
    expect(operations.map((operation) => plan.faultsOf(call(operation)).length)).toEqual([0, 0, 1, 1, 0]);
    expect(active.hits).toBe(2);
  });

  it('affects matching calls with its probability until it is removed', () => {
    const hitsWithSeed = (seed: number): number[] => {
      const plan = new FaultPlan(seededRandom(seed));
      const active = plan.add({ on: ({ method }) => method === 'GET', times: Infinity, probability: 0.5, fault });
      const hits = Array.from({ length: 20 }, () => plan.faultsOf(call('a')).length);
      active.remove();
      return [...hits, plan.faultsOf(call('a')).length];
    };
    expect(hitsWithSeed(3)).toEqual(hitsWithSeed(3));
    expect(hitsWithSeed(3)).not.toEqual(hitsWithSeed(4));
    expect(hitsWithSeed(3)).toEqual(expect.arrayContaining([0, 1]));
    expect(hitsWithSeed(3).at(-1)).toBe(0);
  });
});

describe('a call log', () => {
  it('counts all calls, those of an operation and those of a group, and contains the last thousand', () => {
    const log = new CallLog();
    for (let index = 0; index < 2500; index += 1) log.record(call(index % 2 === 0 ? 'a.list' : 'a.get'));
    log.record(call('ab.get'));
    expect([log.count(), log.count('a'), log.count('a.get')]).toEqual([2501, 2500, 1250]);
    expect(log.byOperation()).toEqual({ 'a.get': 1250, 'a.list': 1250, 'ab.get': 1 });
    expect(log.last()).toHaveLength(1000);
    expect(log.last(1)).toEqual([call('ab.get')]);
    log.reset();
    expect([log.count(), log.last()]).toEqual([0, []]);
  });
});
