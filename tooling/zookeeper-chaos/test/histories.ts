/** Correct histories, which tests modify to violate one rule each. */

import type { ClientHistory, FinalState } from '../src/history.js';

export function goodHistory(changes: Partial<ClientHistory> = {}): ClientHistory {
  return {
    client: 'c0',
    unsettled: [],
    unexpected: [],
    calls: 20,
    sessionsLost: 0,
    nodeWrites: [
      { creates: ['/a'], deletes: [], mustFail: false, outcome: 'applied' },
      { creates: ['/b'], deletes: [], mustFail: false, outcome: 'not-applied', code: 'connection-lost' },
      { creates: ['/c'], deletes: [], mustFail: false, outcome: 'unknown', code: 'outcome-unknown' },
      { creates: ['/d-1', '/d-2'], deletes: [], mustFail: false, outcome: 'unknown', code: 'outcome-unknown' },
      { creates: ['/e'], deletes: [], mustFail: true, outcome: 'not-applied', code: 'bad-version' },
      { creates: ['/f'], deletes: [], mustFail: false, outcome: 'applied' },
      { creates: [], deletes: ['/f'], mustFail: false, outcome: 'applied' },
    ],
    registerWrites: [
      { path: '/r', value: 'one', onVersion: 0, outcome: 'applied', version: 1 },
      { path: '/r', value: 'two', onVersion: 1, outcome: 'unknown', code: 'outcome-unknown' },
      { path: '/r', value: 'never', onVersion: 1, outcome: 'not-applied', code: 'bad-version' },
    ],
    registerReads: [
      { path: '/r', version: 0, value: '' },
      { path: '/r', version: 1, value: 'one' },
      { path: '/r', version: 2, value: 'two' },
    ],
    segments: [
      {
        path: '/r',
        reads: [
          { changes: 5, eventsBefore: 0, eventsAfter: 2 },
          { changes: 6, eventsBefore: 2, eventsAfter: 3 },
          { changes: 8, eventsBefore: 4, eventsAfter: 4 },
        ],
      },
    ],
    oneShots: [
      { path: '/r', version: 0, events: 1 },
      { path: '/r', version: 2, events: 0 },
    ],
    fencedWrites: [
      { lock: '/l', contender: '/l/x', number: 1, outcome: 'applied', version: 1 },
      { lock: '/l', contender: '/l/x', number: 2, outcome: 'unknown' },
      { lock: '/l', contender: '/l/x', number: 3, outcome: 'applied', version: 3 },
      { lock: '/l', contender: '/l/y', number: 4, outcome: 'applied', version: 4 },
    ],
    ephemerals: [
      { path: '/t/kept', outcome: 'applied', owner: '7' },
      { path: '/t/gone', outcome: 'applied', owner: '6' },
      { path: '/t/never', outcome: 'not-applied' },
    ],
    session: '7',
    tree: { '/tree': '@1', '/tree/x': 'v@9' },
    ...changes,
  };
}

export function goodFinalState(changes: Partial<FinalState> = {}): FinalState {
  return {
    nodes: ['/a', '/c', '/d-1', '/d-2'],
    registers: { '/r': { version: 2, value: 'two' } },
    contenders: [],
    ephemerals: { '/t/kept': '7' },
    tree: { '/tree': '@1', '/tree/x': 'v@9' },
    ...changes,
  };
}
