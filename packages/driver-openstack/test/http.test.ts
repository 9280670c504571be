/** Logins that are never answered. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { sleep } from '@nodepool/core';
import { failureOf } from '@nodepool/driver-kit';
import { openCloud, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

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
