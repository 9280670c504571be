/** Tests the cost of a slow viewer of the status page. */

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { StatusFeed } from '../src/web/feed.js';

const LARGE = 'x'.repeat(100_000);

/** Returns a viewer whose connection accepts no data. */
function stuck(): ServerResponse {
  return new ServerResponse(new IncomingMessage(new Socket()));
}

it('a viewer that reads nothing has one queued message, and is disconnected after some time', async () => {
  const clock = new VirtualClock();
  let round = 0;
  const make = (): object => ({ nodes: [(round += 1), LARGE] });
  const feed = new StatusFeed(clock, make, 100, (error) => {
    throw error;
  });
  const viewer = stuck();
  feed.add(viewer, 'nodes');
  const waiting = viewer.writableLength;
  expect(waiting).toBeGreaterThan(LARGE.length);
  await clock.advance(15_000);
  expect([viewer.writableLength, viewer.destroyed]).toEqual([waiting, false]);
  await clock.advance(1000);
  expect(viewer.destroyed).toBe(true);
  const before = round;
  await clock.advance(60_000);
  expect(round).toBe(before);
});
