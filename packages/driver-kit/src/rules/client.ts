import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DriverError, DriverErrorCode } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness, TestLaunch } from '../provider-harness.js';
import type { ProviderProcess } from '../process.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';
import { watch } from '../watched.js';

/** Rate of the provider in the rule about queues (calls per second), as the two units of drivers. */
const SLOW_RATES = [0.1, 10] as const;
const SLOW = 0.1;
/** Number of launches, whose creations take longer together than one call may. */
const QUEUED = 15;
/** Time limits of these launches, and of the rule (ms). */
const QUEUE_MS = 3_600_000;
/** Time between two replacements of the credentials (ms). */
const READ_INTERVAL_MS = 60_000;
const FOLLOWED = [301, 302, 307, 308] as const;
const REFUSED = [303, 304] as const;
/** The wait that the cloud demands, the error of its clock, and the tolerance (ms). */
const WAIT_MS = 10_000;
const AHEAD_MS = 7_200_000;
const TOLERANCE_MS = 2000;

export const client: RuleGroup = {
  title: 'The client of the API',
  text: '`ApiClient` of core satisfies these rules.',
  rules: [
    {
      id: 'client.queue',
      since: '1.5',
      title: 'the wait for the rate does not count against the deadline of a call',
      text:
        'If many launches wait for the rate, each call would otherwise be sent too late to get an answer in time, and all ' +
        'of them would fail. The kit starts several launches at a rate of one call in ten seconds.',
      needs: ['resources'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        await harness.start(slowProcess(harness));
        const launches = Array.from({ length: QUEUED }, () => {
          const { deadline } = harness.call(QUEUE_MS);
          return harness.launch(harness.node(), { deadline });
        });
        for (const launch of launches) {
          await harness.endOf(launch, `the launch of node ${launch.node.id} at a low rate`, QUEUE_MS);
        }
        expectEqual((await harness.instances()).length, QUEUED, 'instances after launches at a low rate');
      },
    },
    {
      id: 'client.credentials',
      since: '1.5',
      title: 'replaced credentials are read again after a refused call, which is repeated once',
      text:
        'Passwords, keys and tokens change while the launcher runs. A refused call had no effect: the driver reads its ' +
        'credentials again and repeats the call once. No launch fails.',
      needs: ['replaced-credentials', 'resources'],
      check: fromStart(async (harness) => {
        const { node, externalId } = await launchedNode(harness);
        // A driver need not read its files more often.
        await harness.pass(READ_INTERVAL_MS);
        await harness.able('replaceCredentials')();
        await harness.finish(harness.provider.listNodes(harness.call()), 'a list after the credentials were replaced');
        await harness.launched();
        await harness.pass(READ_INTERVAL_MS);
        await harness.able('replaceCredentials')();
        await harness.cleanUp(node, externalId);
      }),
    },
    {
      id: 'client.redirect-within',
      since: '1.5',
      title: 'redirects within the same host are followed, with method and body',
      text:
        'Load balancers and moved services answer with 301, 302, 307 or 308. `fetch` changes the method of some calls, ' +
        'and other clients report a success that was none.',
      needs: ['http', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        for (const status of FOLLOWED) {
          const harness = await context.open();
          harness.able('http').moveCalls(status);
          await harness.start();
          const { node, externalId } = await launchedNode(harness);
          await harness.ours();
          await harness.cleanUp(node, externalId);
          await harness.assertNothingLeft(`after a deletion whose calls were redirected with status ${status}`);
        }
      },
    },
    {
      id: 'client.redirect-away',
      since: '1.5',
      title: 'a redirect to another host is `transient`, and not followed',
      text:
        'The request contains credentials. The error is `transient`, has the outcome `not-applied` for a call that ' +
        'changes nothing, and names both hosts.',
      needs: ['http'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        const { host } = harness.able('http');
        const other = await openHost(host.startsWith('localhost') ? '127.0.0.1' : 'localhost');
        harness.atEnd(() => other.close());
        harness.able('http').redirectTo(`${other.url}/login`);
        const failure = await firstFailure(harness, 'a call that is redirected to another host', 'transient');
        expectEqual(other.requests(), 0, 'requests to another host');
        for (const name of [host, new URL(other.url).host]) expectIn(failure, name);
      },
    },
    {
      id: 'client.redirect-status',
      since: '1.5',
      title: 'a redirect with status 303 or 304 is `transient`',
      text: 'APIs do not redirect with 303 or 304, but proxies do. The launch fails with `transient`.',
      needs: ['http', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        for (const status of REFUSED) {
          const harness = await context.start();
          harness.able('http').redirectCreations(status);
          const launch: TestLaunch = harness.launch();
          await harness.failureOf(launch, `a launch whose creation got status ${status}`, 'transient');
          await harness.cloud.clearFaults?.();
          await harness.assertNothingLeft(`after a creation that got status ${status}`);
        }
      },
    },
    {
      id: 'client.endless',
      since: '1.5',
      title: 'an answer without an end is `transient`',
      text: 'The driver reads a bounded number of bytes, and fails with `transient`. The answer must not fill the memory.',
      needs: ['http'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        harness.able('http').answerEndlessly();
        const failure = await firstFailure(harness, 'a call with an endless answer', 'transient');
        expectEqual(failure.outcome, 'not-applied', `the outcome of "${failure.message}"`);
      },
    },
    {
      id: 'client.retry-date',
      since: '1.5',
      title: 'a date in Retry-After is compared with `Date` of the answer',
      text:
        'The clocks of cloud and launcher can differ by hours. The driver compares the date with the header `Date` of the ' +
        'same answer.',
      needs: ['http'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        harness.able('http').throttleUntil(WAIT_MS, AHEAD_MS);
        const failure = await firstFailure(harness, 'a call that is throttled', 'throttled', 'transient');
        const { retryAfterMs = 0 } = failure;
        assert.ok(
          Math.abs(retryAfterMs - WAIT_MS) <= TOLERANCE_MS,
          `the cloud demands a wait of ${WAIT_MS} ms, and the driver reports ${failure.retryAfterMs} ms`,
        );
      },
    },
    {
      id: 'client.message',
      since: '1.5',
      title: 'a message names the host and the status of the answer',
      text: 'Operators tell from it if the cloud, a proxy or a wrong address has answered.',
      needs: ['http', 'fault:any:echo'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        await harness.plan('any', 'echo');
        const failure = await firstFailure(harness, 'a call that a proxy answered with status 502', 'transient');
        for (const text of [harness.able('http').host, '502']) expectIn(failure, text);
      },
    },
  ],
};

/** Creates a process whose provider makes one call in ten seconds. */
function slowProcess(harness: ProviderHarness): ProviderProcess {
  for (const rate of SLOW_RATES) {
    const process = harness.make({ rate });
    if (Math.abs(process.config.callsPerSecond - SLOW) < SLOW / 10) return process;
  }
  throw new assert.AssertionError({ message: '`rate` of the section does not set `callsPerSecond`' });
}

async function launchedNode(
  harness: ProviderHarness,
): Promise<{ readonly node: ReturnType<ProviderHarness['node']>; readonly externalId: TestLaunchId }> {
  const node = harness.node();
  const { externalId } = await harness.launched(node);
  return { node, externalId };
}

type TestLaunchId = Awaited<ReturnType<ProviderHarness['launched']>>['externalId'];

/** Starts a provider, and lists its instances if the start made no call. Resolves with the failure of one of them. */
async function firstFailure(
  harness: ProviderHarness,
  what: string,
  ...codes: readonly DriverErrorCode[]
): Promise<DriverError> {
  const { provider, context } = harness.make();
  const start = watch(provider.start(context));
  await harness.ended(start, `a start with ${what}`);
  if (start.settled?.ok === false) return harness.failureOf(start, what, ...codes);
  return harness.failureOf(provider.listNodes(harness.call()), what, ...codes);
}

function expectIn({ message }: DriverError, text: string): void {
  assert.ok(message.includes(text), `the message "${message}" lacks "${text}"`);
}

interface OtherHost {
  readonly url: string;
  requests(): number;
  close(): Promise<void>;
}

/** Starts a host that counts its requests. */
async function openHost(name: string): Promise<OtherHost> {
  let requests = 0;
  const server: Server = createServer((_request, response) => {
    requests += 1;
    response.setHeader('content-type', 'application/json').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${name}:${port}`,
    requests: () => requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
