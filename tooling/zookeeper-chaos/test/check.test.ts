/** The checker detects violations: for each rule, a history that violates it. */

import { describe, expect, it } from '@jest/globals';
import { check } from '../src/check/index.js';
import type { ClientHistory, FinalState, NodeWrite } from '../src/history.js';
import { goodFinalState, goodHistory } from './histories.js';

function complaints(history: Partial<ClientHistory>, final: Partial<FinalState> = {}): string[] {
  return check([goodHistory(history)], goodFinalState(final)).map(({ rule, detail }) => `${rule}: ${detail}`);
}

function withWrite(write: NodeWrite): Partial<ClientHistory> {
  return { nodeWrites: [...goodHistory().nodeWrites, write] };
}

describe('the checker', () => {
  it('finds nothing in a correct history', () => {
    expect(complaints({})).toEqual([]);
  });

  it('finds an operation without an outcome, and an error of another kind', () => {
    expect(complaints({ unsettled: ['get /x'], unexpected: ['TypeError'] })).toEqual([
      'no operation without an outcome: get /x',
      'only errors of its own: TypeError',
    ]);
  });

  const rule = 'no write reported wrongly';
  const { nodes } = goodFinalState();
  const wrongNodes: [string, Partial<ClientHistory>, Partial<FinalState>, RegExp][] = [
    ['an applied creation whose znode is missing', {}, { nodes: nodes.slice(1) }, /\/a is missing/],
    ['a creation that was not applied, but whose znode exists', {}, { nodes: [...nodes, '/b'] }, /\/b exists/],
    ['an applied deletion whose znode still exists', {}, { nodes: [...nodes, '/f'] }, /\/f exists/],
    ['a write against its condition', {}, { nodes: [...nodes, '/e'] }, /\/e exists/],
    ['a znode that no client created', {}, { nodes: [...nodes, '/z'] }, /no client created it/],
    ['a creation that was applied twice', {}, { nodes: [...nodes, '/a'] }, /more than once/],
    ['half a transaction', {}, { nodes: nodes.filter((path) => path !== '/d-2') }, /in part/],
    [
      'an impossible answer to a write',
      withWrite({ creates: ['/g'], deletes: [], mustFail: false, outcome: 'not-applied', code: 'node-exists' }),
      {},
      /failed with node-exists/,
    ],
    [
      'success of an impossible write',
      withWrite({ creates: ['/g'], deletes: [], mustFail: true, outcome: 'applied' }),
      {},
      /against its condition/,
    ],
  ];
  it.each(wrongNodes)('finds %s', (_, history, final, detail) => {
    const found = complaints(history, final);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(rule);
    expect(found[0]).toMatch(detail);
  });

  const { registerWrites, registerReads } = goodHistory();
  const wrongRegisters: [string, Partial<ClientHistory>, Partial<FinalState>, RegExp][] = [
    [
      'a version that two writes created',
      { registerWrites: [...registerWrites, { path: '/r', value: 'x', onVersion: 0, outcome: 'applied', version: 1 }] },
      {},
      /made by x and by one/,
    ],
    [
      'a version that does not follow its condition',
      {
        registerWrites: [{ path: '/r', value: 'one', onVersion: 0, outcome: 'applied', version: 3 }],
        registerReads: [],
      },
      { registers: { '/r': { version: 1, value: 'one' } } },
      /it became 3/,
    ],
    [
      'a value that was read, but not applied',
      { registerReads: [...registerReads, { path: '/r', version: 3, value: 'never' }] },
      {},
      /was not applied/,
    ],
    [
      'a value that no client wrote',
      { registerReads: [...registerReads, { path: '/r', version: 3, value: 'what' }] },
      {},
      /no client wrote/,
    ],
    [
      'two values of one version',
      { registerReads: [...registerReads, { path: '/r', version: 2, value: 'one' }] },
      {},
      /version 2 was read as one/,
    ],
    ['fewer changes than were applied', {}, { registers: { '/r': { version: 0, value: '' } } }, /version 0 after/],
    [
      'more changes than can have been applied',
      { oneShots: [] },
      { registers: { '/r': { version: 3, value: 'two' } } },
      /version 3 after/,
    ],
  ];
  it.each(wrongRegisters)('finds %s', (_, history, final, detail) => {
    const found = complaints(history, final);
    expect(found.length).toBeGreaterThan(0);
    expect(found[0]).toMatch(rule);
    expect(found.join('\n')).toMatch(detail);
  });

  it.each([
    ['lost', { changes: 10, eventsBefore: 5, eventsAfter: 5 }],
    ['duplicated', { changes: 9, eventsBefore: 6, eventsAfter: 6 }],
  ])('finds that an event of a persistent watch was %s', (what, read) => {
    const segments = goodHistory().segments.map(({ path, reads }) => ({ path, reads: [...reads, read] }));
    expect(complaints({ segments })).toEqual([
      expect.stringMatching(`no watch event lost or duplicated.*were ${what}`),
    ]);
  });

  it('finds a one-shot watch that fired twice, and one that never fired', () => {
    const oneShots = [
      { path: '/r', version: 0, events: 2 },
      { path: '/r', version: 1, events: 0 },
    ];
    expect(complaints({ oneShots })).toEqual([
      expect.stringMatching('received 2 events'),
      expect.stringMatching('received no event, and the znode has version 2'),
    ]);
  });

  it('finds a write under the lock by another client', () => {
    const fencedWrites = [{ lock: '/l', contender: '/l/x', number: 1, outcome: 'applied' as const, version: 2 }];
    expect(complaints({ fencedWrites })).toEqual([
      expect.stringMatching('no lock held by two.*write 1 made version 2'),
    ]);
  });

  it('finds a lock holder that writes after another client held the lock', () => {
    const write = (contender: string, number: number): ClientHistory['fencedWrites'][number] => ({
      ...{ lock: '/l', contender, number, outcome: 'applied', version: number },
    });
    const fencedWrites = [write('/l/x', 1), write('/l/y', 2), write('/l/x', 3)];
    expect(complaints({ fencedWrites })).toEqual([expect.stringMatching('no lock held by two.*wrote version 3')]);
  });

  it('finds a contender that was left behind', () => {
    expect(complaints({}, { contenders: ['/l/z'] })).toEqual([expect.stringMatching('no contender left behind: /l/z')]);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['is missing while its session is open', {}, /kept is missing/],
    ['outlived its session', { '/t/kept': '7', '/t/gone': '6' }, /session 6 is over/],
    ['exists though its creation was not applied', { '/t/kept': '7', '/t/never': '7' }, /never exists/],
  ])('finds an ephemeral that %s', (_, ephemerals, detail) => {
    const found = complaints({}, { ephemerals });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(detail);
  });

  it.each<[string, Record<string, string>]>([
    ['lacks a znode', { '/tree': '@1' }],
    ['has an old state', { '/tree': '@1', '/tree/x': 'v@8' }],
    ['has an additional znode', { '/tree': '@1', '/tree/x': 'v@9', '/tree/y': 'v@9' }],
  ])('finds a tree cache that %s', (_, tree) => {
    expect(complaints({ tree })).toEqual([expect.stringMatching('tree caches equal')]);
  });
});
