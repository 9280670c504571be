/** HTTP between the driver and Google Cloud: redirects, endless answers, clocks that differ, secrets, slow logins. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { sleep } from '@nodepool/core';
import { failureOf, realTime, TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import { movedCalls, startMetadataService, startOtherHost, type OtherHost } from '@nodepool/simulated-gce';
import { gceDriver } from '../src/driver.js';
import { openCloud, section, sectionFor, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const LIST = 'instances.list';
const TOKEN = 'token';
const HOUR_MS = 3_600_000;

let open: OpenCloud;
let test: AnyTestProvider;

beforeEach(async () => {
  open = await openCloud();
  test = new TestProvider(open, section({ 'credentials-file': open.cloud.loginFile }));
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
      expect(open.cloud.inspect.instances()).toEqual([]);
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
    open.cloud.faults.add({ on: 'instances.insert', fault: { kind: 'redirect', status, to }, times: Infinity });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient' });
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
  open.cloud.faults.add({ on: LIST, fault: { kind: 'status', status: 429, reason: 'rateLimitExceeded', retryAfter } });
  const { retryAfterMs } = await failureOf(list());
  expect(retryAfterMs).toBeGreaterThan(8000);
  expect(retryAfterMs).toBeLessThan(12_000);
});

it('a message names the host, the status and the content type, and contains no secret', async () => {
  await test.start();
  const json = { error: 'denied', error_description: 'Denied: Bearer ya29.a0AfB_byC-0123456789 of token-000000' };
  open.cloud.faults.add({ on: LIST, fault: { kind: 'proxy', status: 418, json } });
  const failure = await failureOf(list());
  expect(failure.message).toContain(`(answer of ${new URL(open.cloud.url).host}: 418, `);
  expect(inspect(failure, { depth: Infinity, showHidden: true })).not.toContain('ya29');
});

describe('a token endpoint', () => {
  it('may answer with another content type than that of JSON', async () => {
    open.cloud.faults.add({ on: TOKEN, times: Infinity, fault: { kind: 'content-type', type: 'text/plain' } });
    await test.start();
    await list();
  });

  it.each([
    ['JSON of another form', { access_tokens: [{ token: 'ya29.a0AfB_byC-0123456789' }] }],
    ['a text', 'ya29.a0AfB_byC-0123456789'],
    ['a nested text', ['{"access_token": "opaque-0123456789"}']],
  ])('puts no token into messages with %s', async (_what, json) => {
    await test.start();
    open.cloud.revokeTokens();
    open.cloud.faults.add({ on: TOKEN, times: Infinity, fault: { kind: 'proxy', status: 200, json: json as object } });
    const failure = await failureOf(list());
    expect(failure.outcome).toBe('not-applied');
    expect(inspect(failure, { depth: Infinity, showHidden: true })).not.toMatch(/ya29|opaque-0/);
  });

  it('ends a call with a message that names it if it never answers, and the next call logs in', async () => {
    await test.start();
    open.cloud.revokeTokens();
    open.cloud.faults.add({ on: TOKEN, fault: { kind: 'hang', when: 'before' } });
    const before = open.time.clock.monotonic();
    const failure = await failureOf(list());
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(failure.message).toContain(
      `the login with the credentials in ${open.cloud.loginFile} had no answer in time`,
    );
    expect(failure.message).toContain(`(no answer of ${new URL(open.cloud.url).host}`);
    expect(open.time.clock.monotonic() - before).toBeLessThanOrEqual(31_000);
    await list();
  });

  it('that never answers does not keep the present token from being used until it expires', async () => {
    await test.start();
    open.cloud.faults.add({ on: TOKEN, times: Infinity, fault: { kind: 'hang', when: 'before' } });
    await pass(500_000);
    const before = open.time.clock.monotonic();
    await list();
    expect(open.time.clock.monotonic() - before).toBeLessThan(1000);
  });
});

describe('the metadata service', () => {
  const former = { ...process.env };
  /** The library uses timers of its own. */
  const time = realTime();

  beforeEach(() => {
    delete process.env['GOOGLE_APPLICATION_CREDENTIALS'];
    process.env['HOME'] = '/nowhere';
    process.env['METADATA_SERVER_DETECTION'] = 'ping-only';
    // The library imports an ES module otherwise, which this version of Jest does not support.
    Reflect.set(globalThis, 'window', { fetch });
  });

  afterEach(() => {
    process.env = { ...former };
    Reflect.deleteProperty(globalThis, 'window');
  });

  /** Returns a provider that uses the machine's service account. */
  function provider(host: string): AnyTestProvider {
    process.env['GCE_METADATA_HOST'] = host;
    const { 'credentials-file': _none, ...used } = sectionFor(open.cloud, section());
    return new AnyTestProvider({ time, driver: gceDriver(), section: used });
  }

  it('may be away at the start of the launcher', async () => {
    const away = await startMetadataService(() => open.cloud.token());
    await away.close();
    test = provider(away.host);
    await expect(test.start()).rejects.toThrow(`the metadata service at ${away.host} does not answer`);
    const service = await startMetadataService(() => open.cloud.token(), Number(new URL(`http://${away.host}`).port));
    await test.start();
    expect(await test.end(test.provider.listNodes(test.call()))).toEqual([]);
    await service.close();
  });
});
