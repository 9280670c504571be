/** Tests of the end of a request as one launcher records it, and of the decision whether that launcher reports it. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { Emitter, type NodeRequest } from '@nodepool/core';
import { requestWith } from '@nodepool/core/testing';
import { RequestEntry, type Change, type Store } from '@nodepool/store';
import { requestLine } from '../src/history/journal-lines.js';
import { Timelines } from '../src/timeline/timelines.js';
import { ManualClock } from './fixtures.js';

const ID = '200-0000000001';
const POOL = 'demo/main';
const OTHER = 'demo/other';

let changes: Emitter<Change<RequestEntry>>;
let timelines: Timelines;
/** True if the id of the request chooses this launcher. */
let isChosen: boolean;
/** The result of each request that ended, and whether this launcher reports it. */
let ends: string[];
let before: RequestEntry | undefined;
let version: number;

beforeEach(() => {
  const fail = (error: unknown): never => {
    throw error;
  };
  changes = new Emitter(fail);
  isChosen = true;
  ends = [];
  before = undefined;
  version = 0;
  const nothing = { all: () => [], onChange: () => () => undefined, pools: () => [], get: () => undefined };
  const requests = { ...nothing, onChange: (listener: (change: Change<RequestEntry>) => void) => changes.on(listener) };
  const store = { requests, nodes: nothing, components: nothing, onComplete: () => () => undefined };
  timelines = new Timelines({
    store: store as unknown as Store,
    clock: new ManualClock(),
    onError: fail,
    reports: (id, poolId) => id === ID && poolId === null && isChosen,
  });
  timelines.events.requestEnded.on(({ ended, isReported }) =>
    ends.push(`${ended?.result ?? ''}, ${isReported ? 'reported' : 'not reported'}`),
  );
  timelines.start();
  record({ state: 'requested' }, false);
});

/** Reports a change of the record or its lock. */
function record(facts: Partial<NodeRequest>, isLocked: boolean): void {
  const value = requestWith({ id: ID, node_types: ['small'], ...facts });
  const after = new RequestEntry({ value, data: new Uint8Array() }, version++, isLocked);
  changes.emit({ id: ID, before, after });
  before = after;
}

function deleted(wasFree: boolean): void {
  changes.emit({ id: ID, before, after: undefined, wasFree });
}

function accept(pool = POOL): void {
  timelines.accepting(ID, pool);
  record({ state: 'pending' }, true);
  timelines.taken(ID, pool);
}

const life = () => timelines.request(ID)!;

describe('a launcher reports', () => {
  it('a request that it has fulfilled', () => {
    accept();
    record({ state: 'fulfilled' }, false);
    timelines.settled(ID, 'fulfilled', ['1']);
    timelines.released(ID, POOL);
    expect(ends).toEqual(['fulfilled, reported']);
  });

  it('a request that it has fulfilled while the cache was not up to date, without a phase elsewhere', () => {
    accept();
    timelines.settled(ID, 'fulfilled', ['1']);
    timelines.released(ID, POOL);
    // After a restart of ZooKeeper, the lock is read before the record.
    record({ state: 'pending' }, false);
    expect(ends).toEqual([]);
    record({ state: 'fulfilled' }, false);
    expect(ends).toEqual(['fulfilled, reported']);
    expect(life().segments.map(({ phase }) => phase)).not.toContain('elsewhere');
  });

  it('a request that it has fulfilled, and that was deleted before the cache showed that', () => {
    accept();
    timelines.settled(ID, 'fulfilled', ['1']);
    timelines.released(ID, POOL);
    deleted(false);
    expect(ends).toEqual(['fulfilled, reported']);
    expect(life().ended).toMatchObject({ result: 'fulfilled', nodes: ['1'] });
  });

  it('a request as fulfilled that was deleted before the launcher knew the result of its write', () => {
    accept();
    deleted(false);
    timelines.settled(ID, 'fulfilled', ['1']);
    timelines.released(ID, POOL);
    expect(ends).toEqual(['fulfilled, reported']);
  });

  it('a request as failed that was deleted before the launcher knew the result of its write', () => {
    accept();
    deleted(false);
    timelines.settled(ID, 'failed');
    timelines.released(ID, POOL);
    expect(ends).toEqual(['failed, reported']);
    expect(timelines.failedRequests.newestFirst()).toEqual([life()]);
    expect(timelines.endedRequests.newestFirst()).toEqual([]);
  });

  it('a request that it has failed', () => {
    accept();
    timelines.settled(ID, 'failed');
    record({ state: 'failed' }, false);
    timelines.released(ID, POOL);
    expect(ends).toEqual(['failed, reported']);
  });

  it('a withdrawn request that it holds, even if another launcher is chosen', () => {
    isChosen = false;
    accept();
    deleted(false);
    expect(life().ended?.result).toBe('cancelled');
    timelines.settled(ID, 'cancelled');
    timelines.released(ID, POOL);
    expect(ends).toEqual(['cancelled, reported']);
  });

  it('a withdrawn request that waits if its id chooses this launcher', () => {
    deleted(true);
    expect(ends).toEqual(['cancelled, reported']);
  });

  it('a withdrawn request that waits again after this launcher declined it', () => {
    accept();
    record({ state: 'requested' }, false);
    timelines.released(ID, POOL);
    deleted(true);
    expect(ends).toEqual(['cancelled, reported']);
  });
});

it('a request that is withdrawn before an acceptance by this launcher is reported once', () => {
  timelines.accepting(ID, POOL);
  deleted(true);
  expect(life().ended?.result).toBe('cancelled');
  timelines.released(ID, POOL);
  expect(ends).toEqual(['cancelled, reported']);
});

describe('a launcher does not report', () => {
  it.each(['fulfilled', 'failed'] as const)('a request that another one has %s', (state) => {
    record({ state: 'pending' }, true);
    record({ state }, false);
    expect(ends).toEqual([`${state}, not reported`]);
  });

  it('a request that another one has accepted first, and fulfilled', () => {
    timelines.accepting(ID, POOL);
    record({ state: 'pending' }, true);
    timelines.released(ID, POOL);
    expect([life().pool, life().phase]).toEqual([undefined, 'elsewhere']);
    record({ state: 'fulfilled' }, false);
    expect(ends).toEqual(['fulfilled, not reported']);
  });

  it('a request that it has lost with its session, and that another one has fulfilled', () => {
    accept();
    record({ state: 'fulfilled' }, false);
    timelines.released(ID, POOL);
    expect(ends).toEqual(['fulfilled, not reported']);
  });

  it('a waiting request whose id chooses another one', () => {
    isChosen = false;
    deleted(true);
    expect(ends).toEqual(['cancelled, not reported']);
  });
});

describe('the end of a request is not seen', () => {
  it('if another launcher held it when it was deleted', () => {
    record({ state: 'pending' }, true);
    deleted(false);
    expect(ends).toEqual(['unseen, not reported']);
    expect(requestLine(life())).not.toHaveProperty('result');
  });

  it('if a launcher lost it with its session and finds it deleted', () => {
    accept();
    deleted(false);
    timelines.released(ID, POOL);
    expect(ends).toEqual(['unseen, not reported']);
  });

  it('if it was deleted during an acceptance that another launcher may have won', () => {
    timelines.accepting(ID, POOL);
    deleted(false);
    expect(life().ended?.result).toBe('unseen');
    timelines.released(ID, POOL);
    expect(ends).toEqual(['unseen, not reported']);
  });
});

it('a pool that releases a request late does not end the work of another pool on it', () => {
  accept();
  record({ state: 'requested' }, false);
  accept(OTHER);
  timelines.released(ID, POOL);
  expect(life().holder).toBe(OTHER);
});

it('an end that was not reported yet is reported when the launcher stops', () => {
  accept();
  record({ state: 'fulfilled' }, false);
  timelines.stop();
  expect(ends).toHaveLength(1);
});
