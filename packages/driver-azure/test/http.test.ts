/** HTTP between the driver and Azure: redirects, answers, clocks, secrets, authorities, and lost creations. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { inspect } from 'node:util';
import type { JsonObject } from '@nodepool/core';
import { failureOf } from '@nodepool/driver-kit';
import { movedCalls, startOtherHost, type OtherHost } from '@nodepool/simulated-azure';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const LIST = 'virtualMachines.list';
const CREATE = 'virtualMachines.put';
const VMS = 'Microsoft.Compute/virtualMachines';
const HOUR_MS = 3_600_000;

let open: OpenCloud;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud();
  test = new TestProvider(open);
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
});

const list = (): Promise<unknown> => test.end(test.provider.listNodes(test.call()));

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
      expect(open.cloud.list(VMS)).toEqual([]);
      expect(moved.hits).toBeGreaterThan(5);
    },
  );

  it('to another host is refused with the names of both, and nothing is sent there', async () => {
    await test.start();
    const url = other.url.replace('localhost', '127.0.0.1');
    const fault = { kind: 'redirect', status: 302, to: `${url}/login` } as const;
    open.cloud.faults.add({ on: LIST, times: Infinity, fault });
    const failure = await failureOf(list());
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(failure.message).toContain(`${new URL(open.cloud.url).host} answered with status 302`);
    expect(failure.message).toContain(`it redirects to ${new URL(url).host}`);
    expect(other.requests).toBe(0);
  });

  it.each([303, 304])('of status %i is a failure of the provider and not of the node', async (status) => {
    await test.start();
    const to = (url: URL): string => url.pathname;
    open.cloud.faults.add({ on: CREATE, fault: { kind: 'redirect', status, to }, times: 3 });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });
});

it('an endless answer ends the call', async () => {
  await test.start();
  open.cloud.faults.add({ on: LIST, fault: { kind: 'endless' } });
  const failure = await failureOf(list());
  expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  expect(failure.message).toContain('longer than 33554432 bytes');
});

it('a date in Retry-After is one of the clock of the cloud, which may be ahead by hours', async () => {
  await test.start();
  open.cloud.configure({ clockAheadMs: 2 * HOUR_MS });
  const retryAfter = new Date(open.time.clock.now() + 2 * HOUR_MS + 10_000).toUTCString();
  open.cloud.faults.add({ on: LIST, fault: { kind: 'status', status: 503, code: 'ServiceUnavailable', retryAfter } });
  const { retryAfterMs } = await failureOf(list());
  expect(retryAfterMs).toBeGreaterThan(8000);
  expect(retryAfterMs).toBeLessThan(12_000);
});

it('a message names the host, the status and the content type, and contains no secret', async () => {
  await test.start();
  const message =
    'Denied: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2RlcG9vbCJ9.c2lnbmF0dXJl of the secret of the simulation';
  open.cloud.faults.add({ on: LIST, fault: { kind: 'status', status: 418, code: 'Teapot', message } });
  const failure = await failureOf(list());
  expect(failure.message).toContain(`(answer of ${new URL(open.cloud.url).host}: 418, `);
  expect(inspect(failure, { depth: Infinity, showHidden: true })).not.toMatch(/eyJ|the secret of the simulation/);
});

describe('a creation whose outcome is unknown', () => {
  it.each([
    ['has failed before its effect', { kind: 'status', status: 503, code: 'ServiceUnavailable' }],
    ['was lost', { kind: 'cut', when: 'before' }],
    ['took effect', { kind: 'cut', when: 'after' }],
  ] as const)('is repeated and creates one VM if it %s', async (_what, fault) => {
    await test.start();
    open.cloud.faults.add({ on: CREATE, fault });
    const before = open.time.clock.monotonic();
    await test.launch();
    expect(open.time.clock.monotonic() - before).toBeLessThan(30_000);
    expect(open.cloud.calls.count(CREATE)).toBe(2);
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('is searched for if the repetition fails, too', async () => {
    await test.start();
    open.cloud.faults.add({ on: CREATE, times: 2, fault: { kind: 'cut', when: 'before' } });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(open.cloud.list(VMS)).toEqual([]);
  });

  it('ends if neither it nor the repetition is answered', async () => {
    await test.start();
    open.cloud.faults.add({ on: CREATE, times: Infinity, fault: { kind: 'hang', when: 'before' } });
    expect(['timeout', 'transient']).toContain((await test.failedLaunch()).code);
    expect(open.cloud.list(VMS)).toEqual([]);
  });
});

it('an authority that was replaced is read again when the certificate is not trusted', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'azure-ca-'));
  const [authFile, caFile] = [join(folder, 'auth.json'), join(folder, 'ca.pem')];
  const auth = JSON.parse(readFileSync(open.cloud.authFile, 'utf8')) as JsonObject & { readonly caFile: string };
  writeFileSync(caFile, rootCertificates[0] ?? '');
  writeFileSync(authFile, JSON.stringify({ ...auth, caFile }));
  test = new TestProvider(open, section({ 'auth-path': authFile }));
  await expect(test.start()).rejects.toThrow(/no answer of localhost:\d+: unable to verify the first certificate/);
  copyFileSync(auth.caFile, caFile);
  await test.start();
  await test.launch();
  rmSync(folder, { recursive: true });
});
