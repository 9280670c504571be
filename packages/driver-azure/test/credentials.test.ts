/** Credentials that are replaced while the provider runs, and tokens that cannot be renewed. */

import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '@nodepool/core';
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
  ])('does not count as a refusal of the credentials if it %s', async (_what, fault) => {
    open.cloud.revokeTokens();
    open.cloud.faults.add({ on: 'login.token', fault });
    expect(await failureOf(list())).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    // Microsoft's library sends no login for a minute after such an answer.
    expect(await failureOf(list())).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });
});

describe('a token that cannot be renewed', () => {
  afterEach(() => void jest.useRealTimers());

  it('is used until it expires, and ends neither the process nor the next login', async () => {
    jest.useFakeTimers({
      doNotFake: ['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
    });
    open.cloud.configure({ tokenSeconds: 60 });
    open.cloud.revokeTokens();
    await list();
    const outage = open.cloud.faults.add({ on: 'login.token', times: Infinity, fault: OUTAGE });
    open.cloud.calls.reset();
    await list();
    expect(open.cloud.calls.count(LIST)).toBe(1);
    await open.time.until(() => outage.hits > 0, 1000);
    await jest.advanceTimersByTimeAsync(90_000);
    await open.time.until(() => outage.hits > 1, 1000);

    expect(await failureOf(list())).toMatchObject({ outcome: 'not-applied' });
    outage.remove();
    // Microsoft's library sends no login for a minute after such an answer.
    await jest.advanceTimersByTimeAsync(61_000);
    await list();
  });
});
