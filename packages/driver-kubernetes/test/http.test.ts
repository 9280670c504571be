/** HTTP between the driver and a cluster: redirects, endless answers, clocks that differ, and secrets. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { failureOf, TestProvider } from '@nodepool/driver-kit';
import { ADMIN_TOKEN, movedCalls, startOtherHost, type OtherHost } from '@nodepool/simulated-kubernetes';
import { kubernetesDriver } from '../src/index.js';
import { openCluster, section, type OpenCluster } from './cluster.js';

const LIST = 'namespaces.list';
const HOUR_MS = 3_600_000;

let open: OpenCluster;
let test: TestProvider;

beforeEach(async () => {
  open = await openCluster('kubernetes');
  const { time, environment } = open;
  const driver = kubernetesDriver('kubernetes', environment);
  test = new TestProvider({ time, driver, section: section('kubernetes') });
});

afterEach(async () => {
  await test.stop();
  await open.cluster.close();
});

const start = (): Promise<unknown> => test.start();
const namespaces = (): string[] => open.cluster.list('namespaces').map(({ metadata }) => metadata.name);

describe('a redirect', () => {
  let other: OtherHost;

  beforeEach(async () => {
    other = await startOtherHost();
  });

  afterEach(() => other.close());

  it.each([301, 302, 307, 308])(
    'of status %i within the host is followed by creations, lists, watches and deletions',
    async (status) => {
      const moved = open.cluster.faults.add(movedCalls(status));
      await test.start();
      const { externalId } = await test.launch();
      await test.cleanUp(externalId);
      expect(namespaces()).not.toContain(externalId);
      expect(moved.hits).toBeGreaterThan(5);
    },
  );

  it('to another host is refused with the names of both, and nothing is sent there', async () => {
    const fault = { kind: 'redirect', status: 302, to: `${other.url}/login` } as const;
    open.cluster.faults.add({ on: LIST, times: Infinity, fault });
    const failure = await failureOf(start());
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(failure.message).toContain(`${new URL(open.cluster.url).host} answered with status 302`);
    expect(failure.message).toContain(`it redirects to ${new URL(other.url).host}`);
    expect(other.requests).toBe(0);
  });

  it.each([303, 304])('of status %i is a failure of the provider and not of the node', async (status) => {
    await test.start();
    const to = (url: URL): string => url.pathname;
    open.cluster.faults.add({ on: 'namespaces.create', fault: { kind: 'redirect', status, to }, times: Infinity });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });
});

it('an endless answer ends the call', async () => {
  open.cluster.faults.add({ on: LIST, fault: { kind: 'endless' } });
  const failure = await failureOf(start());
  expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  expect(failure.message).toContain('longer than 33554432 bytes');
});

it('a date in Retry-After is one of the clock of the cloud, which may be ahead by hours', async () => {
  open.cluster.configure({ clockAheadMs: 2 * HOUR_MS });
  const retryAfter = new Date(open.time.clock.now() + 2 * HOUR_MS + 10_000).toUTCString();
  open.cluster.faults.add({ on: LIST, fault: { kind: 'status', status: 503, retryAfter } });
  const { retryAfterMs } = await failureOf(start());
  expect(retryAfterMs).toBeGreaterThan(8000);
  expect(retryAfterMs).toBeLessThan(12_000);
});

it('a message names the host, the status and the content type, and contains no secret', async () => {
  const json = {
    kind: 'Status',
    message: `Denied: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln of ${ADMIN_TOKEN}`,
  };
  open.cluster.faults.add({ on: LIST, fault: { kind: 'proxy', status: 418, json } });
  const failure = await failureOf(start());
  expect(failure.message).toContain(`(answer of ${new URL(open.cluster.url).host}: 418, `);
  expect(inspect(failure, { depth: Infinity, showHidden: true })).not.toMatch(new RegExp(`eyJ|${ADMIN_TOKEN}`));
});
