/** Decisions that need no services: the number of runners, registrations to delete, jobs and scopes. */

import { describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { messageIn, type JobMessage } from '../src/github/documents.js';
import { isSafeAddress } from '../src/github/http.js';
import { scopeOf } from '../src/github/scope.js';
import { AgentComparison, MAX_DELETIONS } from '../src/scale-set/agents.js';
import { JobBook } from '../src/scale-set/jobs.js';
import { planScale, type ScaledRunner } from '../src/scale-set/scaling.js';

describe('the number of runners', () => {
  const runner = (name: string, more: Partial<ScaledRunner> = {}): ScaledRunner => ({
    ...{ name, state: 'busy', counts: true, createdAt: 0, onlineAt: undefined, ...more },
  });
  const plan = (assigned: number, runners: readonly ScaledRunner[], limits = { min: 0, max: 10 }) =>
    planScale({ assigned, runners, ...limits, idleTimeoutMs: 1000, now: 5000 });

  it('follows the assigned jobs, the minimum and the maximum', () => {
    expect(plan(3, [runner('a')]).create).toBe(2);
    expect(plan(3, [], { min: 2, max: 10 }).create).toBe(5);
    expect(plan(30, [], { min: 2, max: 10 }).create).toBe(10);
  });

  it('does not count runners whose job has ended, and counts those that GitHub may count', () => {
    expect(plan(1, [runner('a', { counts: false })]).create).toBe(1);
    expect(plan(1, [runner('a', { state: 'ending' })]).create).toBe(0);
  });

  it('falls by waiting requests first, the newest first', () => {
    const waiting = [1, 2, 3].map((at) => runner(`r${at}`, { state: 'requested', createdAt: at }));
    expect(plan(1, waiting)).toMatchObject({ create: 0, cancel: ['r3', 'r2'], remove: [] });
  });

  it('falls by idle runners after the idle timeout, and never by busy or starting ones', () => {
    const runners = [
      runner('busy', { onlineAt: 1000 }),
      runner('starting', { state: 'starting' }),
      runner('idle', { state: 'online', onlineAt: 3000 }),
      runner('new', { state: 'online', onlineAt: 4500 }),
    ];
    expect(plan(0, runners)).toEqual({ create: 0, cancel: [], remove: ['idle'], againMs: 500 });
  });
});

describe('registrations without a runner', () => {
  const SET = { id: 7, name: 'linux' };
  const agent = (id: number, name: string, scaleSetId = 7) => ({ id, name, scaleSetId });
  const NAME = 'linux-0123456789abcdef';

  it('are deleted after two listings in a row', () => {
    const comparison = new AgentComparison();
    expect(comparison.compare([agent(1, NAME)], [], SET).orphans).toEqual([]);
    expect(comparison.compare([agent(1, NAME)], [], SET).orphans).toEqual([agent(1, NAME)]);
    comparison.reset();
    expect(comparison.compare([agent(1, NAME)], [], SET).orphans).toEqual([]);
  });

  it.each([
    ['of another scale set', agent(1, NAME, 8)],
    ['with a name of another form', agent(1, 'linux-by-hand')],
    ['with a longer name', agent(1, `${NAME}0`)],
    ['of a scale set whose name begins the same', agent(1, 'linux-arm-0123456789abcdef')],
  ])('%s are kept', (_what, other) => {
    const comparison = new AgentComparison();
    comparison.compare([other], [], SET);
    expect(comparison.compare([other], [], SET).orphans).toEqual([]);
  });

  it('are kept if a runner has the name by now', () => {
    const comparison = new AgentComparison();
    comparison.compare([agent(1, NAME)], [], SET);
    const runners = [{ name: NAME, agent: 1, isRegistered: true }];
    expect(comparison.compare([agent(1, NAME)], runners, SET).orphans).toEqual([]);
  });

  it('are deleted a few at a time', () => {
    const comparison = new AgentComparison();
    const many = Array.from({ length: 50 }, (_, id) => agent(id + 1, `linux-${String(id).padStart(16, '0')}`));
    comparison.compare(many, [], SET);
    expect(comparison.compare(many, [], SET).orphans).toHaveLength(MAX_DELETIONS);
  });

  it('a runner is gone if two listings lack it, and only if it was registered before', () => {
    const comparison = new AgentComparison();
    const runners = [
      { name: NAME, agent: 1, isRegistered: true },
      { name: 'linux-fedcba9876543210', agent: null, isRegistered: false },
    ];
    expect(comparison.compare([], runners, SET).gone).toEqual([]);
    expect(comparison.compare([], runners, SET).gone).toEqual([NAME]);
  });
});

describe('jobs', () => {
  const message = (kind: JobMessage['kind'], more: Partial<JobMessage> = {}): JobMessage => ({
    ...{ kind, requestId: 0, jobId: 'j1', repository: 'acme/app', workflow: 'ci.yml', runId: 1, name: 'build' },
    ...{ queuedAt: undefined, assignedAt: undefined, startedAt: undefined, runner: '', result: '', ...more },
  });

  it('ignore repeated and overtaken messages', () => {
    const book = new JobBook(new VirtualClock());
    expect(book.note(message('started', { runner: 'r1' }))).toBeDefined();
    expect(book.note(message('assigned'))).toBeUndefined();
    expect(book.note(message('started', { runner: 'r1' }))).toBeUndefined();
    expect(book.shown()).toMatchObject([{ state: 'running', runner: 'r1' }]);
  });

  it('are assigned again after a later assignment', () => {
    const book = new JobBook(new VirtualClock());
    book.note(message('assigned', { assignedAt: 1000 }));
    book.note(message('completed', { result: 'canceled' }));
    expect(book.note(message('assigned', { assignedAt: 1000 }))).toBeUndefined();
    expect(book.note(message('assigned', { assignedAt: 2000 }))).toBeDefined();
  });

  it('cause one request each, the oldest first', () => {
    const book = new JobBook(new VirtualClock());
    book.note(message('assigned'));
    book.note(message('assigned', { jobId: 'j2' }));
    expect([book.requestFor('r1')?.id, book.requestFor('r2')?.id, book.requestFor('r3')]).toEqual(['j1', 'j2', null]);
  });

  it('are left out of a message that cannot be read, whose numbers count', () => {
    const statistics = { totalAssignedJobs: 2 };
    const found = messageIn({ messageId: 5, messageType: 'x', body: '{', statistics });
    expect(found).toMatchObject({ id: 5, jobs: [], statistics: { assigned: 2 } });
  });
});

describe('addresses', () => {
  it.each([
    ['https://github.com/acme', 'https://api.github.com', '/orgs/acme'],
    ['https://github.com/acme/app/', 'https://api.github.com', '/repos/acme/app'],
    ['https://github.com/enterprises/umbrella', 'https://api.github.com', '/enterprises/umbrella'],
    ['https://acme.ghe.com/acme', 'https://api.acme.ghe.com', '/orgs/acme'],
    ['https://git.example.org/acme', 'https://git.example.org/api/v3', '/orgs/acme'],
  ])('%s', (url, apiUrl, path) => {
    expect(scopeOf(url)).toMatchObject({ apiUrl, registrationPath: `${path}/actions/runners/registration-token` });
  });

  it.each(['https://github.com', 'https://github.com/a/b/c', 'github.com/acme', 'https://github.com/a?b'])(
    '%s is no scope',
    (url) => expect(scopeOf(url)).toBeUndefined(),
  );

  it('credentials are sent over https, and over http to this host only', () => {
    const addresses = ['https://github.com/a', 'http://127.0.0.1:1/a', 'http://github.com/a', 'ftp://localhost/a'];
    expect(addresses.map(isSafeAddress)).toEqual([true, true, false, false]);
  });
});
