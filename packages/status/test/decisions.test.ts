import { beforeEach, describe, expect, it } from '@jest/globals';
import { DecisionLog } from '../src/index.js';
import { VirtualClock } from '@nodepool/core/testing';

let clock: VirtualClock;
beforeEach(() => {
  clock = new VirtualClock();
});

describe('decisions', () => {
  it('are stored by subject, with reason and time, in order', async () => {
    const log = new DecisionLog({ clock });
    const start = clock.now();
    log.record('request', '1', 'a/main', 'declined', 'no such label');
    await clock.advance(1000);
    log.record('request', '1', 'b/main', 'accepted');
    log.record('node', '1', 'b/main', 'launched');
    expect(log.of('request', '1')).toEqual([
      { by: 'a/main', what: 'declined', reason: 'no such label', first: start, last: start, times: 1 },
      { by: 'b/main', what: 'accepted', reason: undefined, first: start + 1000, last: start + 1000, times: 1 },
    ]);
    expect(log.of('request', '2')).toEqual([]);
  });

  it('are counted when they are repeated, also with other decisions between', async () => {
    const log = new DecisionLog({ clock });
    const start = clock.now();
    log.record('request', '1', 'a', 'waits', 'full');
    log.record('request', '1', 'b', 'leaves it');
    await clock.advance(5000);
    log.record('request', '1', 'a', 'waits', 'full');
    expect(log.of('request', '1')).toMatchObject([
      { by: 'a', times: 2, first: start, last: start + 5000 },
      { by: 'b', times: 1 },
    ]);
    log.record('request', '1', 'a', 'waits', 'another reason');
    expect(log.size).toBe(3);
  });

  it('of one subject are limited to the newest', () => {
    const log = new DecisionLog({ clock, perSubject: 3 });
    for (let i = 0; i < 10; i += 1) log.record('node', '1', 'a', `attempt ${i}`);
    expect(log.of('node', '1').map(({ what }) => what)).toEqual(['attempt 7', 'attempt 8', 'attempt 9']);
    expect(log.size).toBe(3);
  });

  it('are deleted for the subjects with the oldest ones when there are too many', () => {
    const log = new DecisionLog({ clock, perKind: 3 });
    log.record('label', 'small', 'a', 'out of service');
    for (const id of ['1', '2', '3']) log.record('request', id, 'a', 'waits');
    log.record('request', '1', 'a', 'accepted');
    expect(log.of('request', '2')).toEqual([]);
    expect(log.of('request', '1')).toHaveLength(2);
    expect(log.of('label', 'small')).toHaveLength(1);
    for (let id = 10; id < 1000; id += 1) log.record('request', String(id), 'a', 'waits');
    expect(log.size).toBe(4);
    expect(log.of('label', 'small')).toHaveLength(1);
  });

  it('about requests and nodes do not displace each other', () => {
    const log = new DecisionLog({ clock, perKind: 100 });
    for (let id = 0; id < 1000; id += 1) {
      for (const what of ['accepted', 'fulfilled']) log.record('request', String(id), 'a', what);
      log.record('node', String(id), 'a', 'launched');
    }
    const known = (kind: 'request' | 'node'): number =>
      Array.from({ length: 1000 }, (_, id) => log.of(kind, String(id))).filter(({ length }) => length > 0).length;
    expect([known('request'), known('node')]).toEqual([50, 100]);
  });
});
