/** HTTP between the driver and a cloud: redirects, endless answers, clocks that differ, secrets, and slow logins. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { sleep } from '@nodepool/core';
import { failureOf } from '@nodepool/driver-kit';
import { movedCalls, startOtherHost, type OtherHost } from '@nodepool/simulated-openstack';
import { openCloud, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const LIST = 'compute.servers.list-detail';
const HOUR_MS = 3_600_000;

let open: OpenCloud;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud({ bootMs: 5000 });
  test = new TestProvider(open);
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
});

const list = (): Promise<unknown> => test.end(test.provider.listNodes(test.call()));
const pass = (ms: number): Promise<void> => test.end(sleep(open.time.clock, ms));

describe('a redirect', () => {
  let other: OtherHost;

  beforeEach(async () => {
    other = await startOtherHost();
  });

  afterEach(() => other.close());

  it.each([301, 302, 307, 308])(
    'of status %i within the host is followed by logins, creations, lists and deletions',
    async (status) => {
      const moved = open.cloud.faults.add(movedCalls(status));
      await test.start();
      const { externalId } = await test.launch();
      await list();
      await test.cleanUp(externalId);
      expect(open.cloud.inspect.servers()).toEqual([]);
      expect(moved.hits).toBeGreaterThan(5);
    },
  );

  it('to another host is refused with the names of both, and nothing is sent there', async () => {
    await test.start();
    const fault = { kind: 'redirect', status: 302, to: `${other.url}/login` } as const;
    open.cloud.faults.add({ on: LIST, times: Infinity, fault });
    const failure = await failureOf(list());
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(failure.message).toContain(`${new URL(open.cloud.url).host} answered with status 302`);
    expect(failure.message).toContain(`it redirects to ${new URL(other.url).host}`);
    expect(other.requests).toBe(0);
  });

  it.each([303, 304])('of status %i is a failure of the provider and not of the node', async (status) => {
    await test.start();
    const to = (url: URL): string => url.pathname;
    open.cloud.faults.add({ on: 'compute.servers.create', fault: { kind: 'redirect', status, to } });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });
});

it('an endless answer ends the call', async () => {
  await test.start();
  open.cloud.faults.add({ on: LIST, times: 2, fault: { kind: 'endless' } });
  const failure = await failureOf(list());
  expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  expect(failure.message).toContain('longer than 33554432 bytes');
});

it('a date in Retry-After is one of the clock of the cloud, which may be ahead by hours', async () => {
  await test.start();
  open.cloud.configure({ clockAheadMs: 2 * HOUR_MS });
  const retryAfter = new Date(open.time.clock.now() + 2 * HOUR_MS + 10_000).toUTCString();
  open.cloud.faults.add({ on: LIST, fault: { kind: 'status', status: 503, retryAfter } });
  const { retryAfterMs } = await failureOf(list());
  expect(retryAfterMs).toBeGreaterThan(8000);
  expect(retryAfterMs).toBeLessThan(12_000);
});

it('a message names the host, the status and the content type, and contains no secret', async () => {
  await test.start();
  const body = '<h1>Denied: user demo, password "secret", token gAAAAABn0123456789012345678901234567890</h1>';
  open.cloud.faults.add({ on: LIST, fault: { kind: 'status', status: 418, body } });
  const failure = await failureOf(list());
  expect(failure.message).toContain(`(answer of ${new URL(open.cloud.url).host}: 418, `);
  expect(inspect(failure, { depth: Infinity, showHidden: true })).not.toContain('gAAAAABn');
});

describe('a login that keystone never answers', () => {
  it('ends with a message that names it, and the next call logs in again', async () => {
    await test.start();
    open.cloud.faults.revokeTokens();
    open.cloud.faults.add({ on: 'identity.tokens.create', fault: { kind: 'hang', when: 'before' } });
    const before = open.time.clock.monotonic();
    const failure = await failureOf(list());
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(failure.message).toContain(`the login at ${open.cloud.authUrl} had no answer in time`);
    expect(open.time.clock.monotonic() - before).toBeLessThanOrEqual(31_000);
    await list();
  });

  it('does not keep the present token from being used until it expires', async () => {
    open.cloud.configure({ tokenTtlMs: 600_000 });
    await test.start();
    open.cloud.faults.add({ on: 'identity.tokens.create', times: Infinity, fault: { kind: 'hang', when: 'before' } });
    await pass(500_000);
    const before = open.time.clock.monotonic();
    await list();
    expect(open.time.clock.monotonic() - before).toBeLessThan(1000);
  });
});
