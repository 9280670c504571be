/** Logins: the token endpoint, and the metadata service. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { sleep } from '@nodepool/core';
import { failureOf, realTime, TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import { startMetadataService } from '@nodepool/simulated-gce';
import { gceDriver } from '../src/driver.js';
import { openCloud, section, sectionFor, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const TOKEN = 'token';

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

describe('a token endpoint', () => {
  it('may answer with another content type than that of JSON', async () => {
    open.cloud.faults.add({ on: TOKEN, times: Infinity, fault: { kind: 'content-type', type: 'text/plain' } });
    await test.start();
    await list();
  });

  it('may have moved to another path', async () => {
    const moved = { kind: 'redirect', status: 307, to: ({ pathname }: URL) => pathname } as const;
    const fault = open.cloud.faults.add({ on: TOKEN, fault: moved });
    await test.start();
    expect(fault.hits).toBe(1);
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
