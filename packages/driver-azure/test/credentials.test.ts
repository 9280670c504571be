/** Credentials that are replaced while the provider runs, and tokens that cannot be renewed. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep, type JsonObject } from '@nodepool/core';
import { failureOf } from '@nodepool/driver-kit';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const NEW_SECRET = 'the new secret';
const LIST = 'virtualMachines.list';
const OUTAGE = {
  kind: 'status',
  status: 503,
  code: 'temporarily_unavailable',
  message: 'AADSTS90033: A transient error has occurred. Please try again.',
} as const;

let open: OpenCloud;
let folder: string;
let authFile: string;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud();
  folder = mkdtempSync(join(tmpdir(), 'azure-credentials-'));
  authFile = join(folder, 'auth.json');
  writeAuth({});
  test = await TestProvider.started(open, section({ 'auth-path': authFile }));
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
  rmSync(folder, { recursive: true });
});

function writeAuth(change: JsonObject): void {
  const auth = JSON.parse(readFileSync(open.cloud.authFile, 'utf8')) as JsonObject;
  writeFileSync(authFile, JSON.stringify({ ...auth, ...change }));
}

const list = (): Promise<unknown> => test.end(test.provider.listNodes(test.call()));

const pass = (ms: number): Promise<void> => test.end(sleep(open.time.clock, ms));

/** Makes the cloud refuse the tokens and the secret that the provider has. */
function replaceSecret(): void {
  open.cloud.changeSecret(NEW_SECRET);
  open.cloud.revokeTokens();
}

describe('a secret that was replaced', () => {
  it('is read from the changed file when the cloud refuses the former one', async () => {
    replaceSecret();
    writeAuth({ clientSecret: NEW_SECRET });
    await test.launch();
    expect(open.cloud.list('Microsoft.Compute/virtualMachines')).toHaveLength(1);
  });

  it('is used by concurrent calls with one login', async () => {
    replaceSecret();
    writeAuth({ clientSecret: NEW_SECRET });
    open.cloud.calls.reset();
    await test.end(Promise.all([1, 2, 3].map(() => test.provider.listNodes(test.call()))));
    expect(open.cloud.calls.count('login.token')).toBe(1);
  });

  it('is reported until the file contains it', async () => {
    replaceSecret();
    const failure = await failureOf(list());
    expect(failure).toMatchObject({ code: 'auth', outcome: 'not-applied' });
    expect(failure.message).toContain('AADSTS7000222');
    expect(failure.message).toContain('correct the file with the credentials, which needs no restart');
    expect(failure.message).not.toContain('the secret of the simulation');
    writeAuth({ clientSecret: NEW_SECRET });
    await list();
  });

  it.each([
    ['is invalid', () => writeFileSync(authFile, '{"clientSecret": "')],
    ['has an invalid tenant', () => writeAuth({ clientSecret: NEW_SECRET, tenantId: 'acme north' })],
    ['names another subscription', () => writeAuth({ clientSecret: NEW_SECRET, subscriptionId: 'other' })],
    [
      'names another login service',
      () => writeAuth({ clientSecret: NEW_SECRET, activeDirectoryEndpointUrl: 'https://login.example.com' }),
    ],
  ])('is not used from a file that %s', async (_what, write) => {
    write();
    open.cloud.revokeTokens();
    await list();
    replaceSecret();
    expect(await failureOf(list())).toMatchObject({ code: 'auth' });
    writeAuth({ clientSecret: NEW_SECRET });
    await list();
  });
});

describe('a login service that fails', () => {
  it.each([
    ['is overloaded', { ...OUTAGE, status: 429, code: 'too_many_requests' }],
    ['is unavailable', OUTAGE],
  ])('does not count as a refusal of the credentials if it %s, and is called again', async (_what, fault) => {
    open.cloud.revokeTokens();
    open.cloud.faults.add({ on: 'login.token', fault });
    expect(await failureOf(list())).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    await list();
  });

  it('gets no login before the time that it demands', async () => {
    open.cloud.revokeTokens();
    const fault = { ...OUTAGE, status: 429, code: 'too_many_requests', retryAfter: 40 };
    open.cloud.faults.add({ on: 'login.token', fault });
    expect(await failureOf(list())).toMatchObject({ retryAfterMs: 40_000 });
    open.cloud.calls.reset();
    expect(await failureOf(list())).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(open.cloud.calls.count('login')).toBe(0);
    await pass(41_000);
    await list();
  });

  it('ends a call with a message that names it if it never answers, and the next call logs in', async () => {
    open.cloud.revokeTokens();
    open.cloud.faults.add({ on: 'login.token', fault: { kind: 'hang', when: 'before' } });
    const before = open.time.clock.monotonic();
    const failure = await failureOf(list());
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(failure.message).toContain(`the login at ${open.cloud.url} had no answer in time`);
    expect(open.time.clock.monotonic() - before).toBeLessThanOrEqual(31_000);
    await list();
  });
});

describe('a token that cannot be renewed', () => {
  it.each([
    ['fails', OUTAGE],
    ['never answers', { kind: 'hang', when: 'before' } as const],
  ])('is used until it expires if the login service %s, and the next login follows', async (_what, fault) => {
    open.cloud.configure({ tokenSeconds: 600 });
    open.cloud.revokeTokens();
    await list();
    const outage = open.cloud.faults.add({ on: 'login.token', times: Infinity, fault });
    await pass(500_000);
    open.cloud.calls.reset();
    await list();
    expect(open.cloud.calls.count(LIST)).toBe(1);
    await open.time.until(() => outage.hits > 0, 1000);
    await pass(95_000);
    await list();
    await pass(10_000);
    expect(await failureOf(list())).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    outage.remove();
    await list();
  });
});
