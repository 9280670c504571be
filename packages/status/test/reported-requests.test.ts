/** Tests of the decision of one launcher whether it reports the end of a request. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { Emitter, type NodeRequest } from '@nodepool/core';
import { requestWith } from '@nodepool/core/testing';
import { RequestEntry, type Change, type Store } from '@nodepool/store';
import { Timelines } from '../src/timeline/timelines.js';
import { ManualClock } from './fixtures.js';

const ID = '200-0000000001';
const POOL = 'demo/main';

let changes: Emitter<Change<RequestEntry>>;
let timelines: Timelines;
/** The pools that the launcher was asked about, if it does not know itself who ended a request. */
let asked: (string | null)[];
let reported: boolean[];
let before: RequestEntry | undefined;

beforeEach(() => {
  const fail = (error: unknown): never => {
    throw error;
  };
  changes = new Emitter(fail);
  asked = [];
  reported = [];
  before = undefined;
  const nothing = { all: () => [], onChange: () => () => undefined, pools: () => [], get: () => undefined };
  const requests = { ...nothing, onChange: (listener: (change: Change<RequestEntry>) => void) => changes.on(listener) };
  timelines = new Timelines({
    store: { requests, nodes: nothing, components: nothing } as unknown as Store,
    clock: new ManualClock(),
    onError: fail,
    reports: (id, poolId) => {
      expect(id).toBe(ID);
      asked.push(poolId);
      return true;
    },
  });
  timelines.events.requestEnded.on(({ isReported }) => reported.push(isReported));
  timelines.start();
  record({ state: 'requested' }, false);
});

/** Reports a change of the record or its lock; undefined: the record is deleted. */
function record(facts: Partial<NodeRequest> | undefined, isLocked: boolean): void {
  const value = requestWith({ id: ID, node_types: ['small'], ...facts });
  const after =
    facts === undefined ? undefined : new RequestEntry({ value, data: new Uint8Array() }, reported.length, isLocked);
  changes.emit({ id: ID, before, after });
  before = after;
}

describe('a launcher reports', () => {
  it('a request that it has fulfilled', () => {
    timelines.taken(ID, POOL);
    record({ state: 'pending' }, true);
    record({ state: 'fulfilled' }, false);
    expect({ reported, asked }).toEqual({ reported: [true], asked: [] });
  });

  it('a request that it has fulfilled with a write whose result it learned later', () => {
    timelines.taken(ID, POOL);
    record({ state: 'pending' }, true);
    timelines.released(ID, POOL);
    record({ state: 'fulfilled' }, false);
    expect({ reported, asked }).toEqual({ reported: [true], asked: [] });
  });

  it('no request that another launcher has fulfilled', () => {
    record({ state: 'pending' }, true);
    record({ state: 'fulfilled' }, false);
    expect({ reported, asked }).toEqual({ reported: [false], asked: [] });
  });

  it('no request that another launcher has fulfilled before its lock was seen', () => {
    record({ state: 'fulfilled' }, false);
    expect({ reported, asked }).toEqual({ reported: [false], asked: [] });
  });

  it('no request that it has given up, and that another launcher has fulfilled', () => {
    timelines.taken(ID, POOL);
    record({ state: 'pending' }, true);
    record({ state: 'requested' }, false);
    timelines.released(ID, POOL);
    record({ state: 'fulfilled' }, false);
    expect({ reported, asked }).toEqual({ reported: [false], asked: [] });
  });

  it('a withdrawn request that it had accepted', () => {
    timelines.taken(ID, POOL);
    record({ state: 'pending' }, true);
    record(undefined, false);
    expect({ reported, asked }).toEqual({ reported: [true], asked: [] });
  });

  it('no withdrawn request that another launcher had accepted', () => {
    record({ state: 'requested' }, true);
    record(undefined, false);
    expect({ reported, asked }).toEqual({ reported: [false], asked: [] });
  });

  it('a withdrawn request that waits if it is the one of all launchers that reports it', () => {
    timelines.taken(ID, POOL);
    record({ state: 'requested' }, true);
    record({ state: 'requested' }, false);
    timelines.released(ID, POOL);
    record(undefined, false);
    expect({ reported, asked }).toEqual({ reported: [true], asked: [null] });
  });

  it('a failed request according to the pool that declined it last', () => {
    record({ state: 'requested' }, true);
    record({ state: 'failed', declined_by: ['pool-1', 'pool-2'] }, false);
    expect({ reported, asked }).toEqual({ reported: [true], asked: ['pool-2'] });
  });
});
