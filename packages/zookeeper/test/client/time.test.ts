/** Deadlines and session expiration, on a clock that the test advances. */

import { describe, expect, it } from '@jest/globals';
import { AbortGroups, Deadlines, type AbortGroup, type Pending } from '../../src/client/pending.js';
import { ClientSession } from '../../src/client/session.js';
import { SessionLostError } from '../../src/index.js';
import { ManualClock } from './helpers.js';

class Waiting implements Pending {
  settled = false;
  deadline = 0;
  abortGroup: AbortGroup | undefined;
  outcome = 'waits';

  timedOut(): void {
    this.settle('timed out');
  }

  aborted(reason: Error): void {
    this.settle(reason.message);
  }

  settle(outcome: string): void {
    this.settled = true;
    this.outcome = outcome;
    this.abortGroup?.delete(this);
  }
}

describe('deadlines', () => {
  it('end each waiting call at its time, in any order', () => {
    const clock = new ManualClock();
    const deadlines = new Deadlines(clock);
    const [long, short, later] = [new Waiting(), new Waiting(), new Waiting()];
    deadlines.add(long, 100);
    deadlines.add(short, 10);
    clock.advance(9);
    deadlines.add(later, 10);
    expect([long.outcome, short.outcome, later.outcome]).toEqual(['waits', 'waits', 'waits']);
    clock.advance(1);
    expect([long.outcome, short.outcome, later.outcome]).toEqual(['waits', 'timed out', 'waits']);
    clock.advance(9);
    expect([long.outcome, later.outcome]).toEqual(['waits', 'timed out']);
    clock.advance(81);
    expect(long.outcome).toBe('timed out');
  });

  it('ignore settled calls, and keep no timer when none remain', () => {
    const clock = new ManualClock();
    const deadlines = new Deadlines(clock);
    const all = Array.from({ length: 1000 }, () => new Waiting());
    for (const waiting of all) deadlines.add(waiting, 50);
    expect(clock.pending).toBe(1);
    for (const waiting of all) waiting.settle('answered');
    clock.advance(50);
    expect(new Set(all.map(({ outcome }) => outcome))).toEqual(new Set(['answered']));
    expect(clock.pending).toBe(0);
  });
});

describe('an abort signal', () => {
  it('ends all calls that use it, and no others', () => {
    const groups = new AbortGroups();
    const [controller, other] = [new AbortController(), new AbortController()];
    const [one, two, answered, elsewhere] = [new Waiting(), new Waiting(), new Waiting(), new Waiting()];
    for (const waiting of [one, two, answered]) groups.add(waiting, controller.signal);
    groups.add(elsewhere, other.signal);
    answered.settle('answered');
    controller.abort(new Error('enough'));
    expect([one, two, answered, elsewhere].map(({ outcome }) => outcome)).toEqual([
      'enough',
      'enough',
      'answered',
      'waits',
    ]);
  });

  it('can be used again after all its calls have settled', () => {
    const groups = new AbortGroups();
    const controller = new AbortController();
    const [first, second] = [new Waiting(), new Waiting()];
    groups.add(first, controller.signal);
    first.settle('answered');
    groups.add(second, controller.signal);
    controller.abort(new Error('enough'));
    expect([first.outcome, second.outcome]).toEqual(['answered', 'enough']);
  });
});

describe('a session', () => {
  function session(clock: ManualClock): { session: ClientSession; losses: SessionLostError[] } {
    const losses: SessionLostError[] = [];
    const made = new ClientSession(
      { id: -1n, password: Buffer.alloc(16), timeoutMs: 1000, provenAt: clock.monotonic() },
      clock,
      (expired, error) => {
        losses.push(error);
        expired.end(error);
      },
    );
    return { session: made, losses };
  }

  it('expires one timeout after the last answered request was sent', () => {
    const clock = new ManualClock();
    const { session: made, losses } = session(clock);
    clock.advance(900);
    // Sent at 500, answered now: the server restarted the timeout in between, and 500 is the safe bound.
    made.proveAlive(500);
    clock.advance(599);
    expect(made.lost.aborted).toBe(false);
    clock.advance(1);
    expect([made.lost.aborted, losses.length]).toEqual([true, 1]);
    expect(made.lost.reason).toBe(losses[0]);
    expect(losses[0]?.message).toContain('0xffffffffffffffff');
  });

  it('does not expire when the process was suspended while an answer was unread', () => {
    const clock = new ManualClock();
    const { session: made } = session(clock);
    clock.holdUp(1500);
    expect(made.lost.aborted).toBe(false);
    // The socket is read now, with the answer to an earlier request.
    made.proveAlive(900);
    clock.advance(399);
    expect(made.lost.aborted).toBe(false);
    clock.advance(1);
    expect(made.lost.aborted).toBe(true);
  });

  it('expires after a suspension of the process if no answer arrived', () => {
    const clock = new ManualClock();
    const { session: made, losses } = session(clock);
    clock.holdUp(1500);
    clock.advance(0);
    expect([made.lost.aborted, losses.length]).toEqual([true, 1]);
  });

  it('is timed with the timeout of the resumption', () => {
    const clock = new ManualClock();
    const { session: made } = session(clock);
    clock.advance(900);
    made.resume(500, 900);
    clock.advance(499);
    expect(made.lost.aborted).toBe(false);
    clock.advance(1);
    expect(made.lost.aborted).toBe(true);
  });

  it('does not expire after it was closed', () => {
    const clock = new ManualClock();
    const { session: made, losses } = session(clock);
    made.end(new SessionLostError('session-lost', 'first'));
    clock.advance(5000);
    expect([losses.length, clock.pending, (made.lost.reason as Error).message]).toEqual([0, 0, 'first']);
  });
});
