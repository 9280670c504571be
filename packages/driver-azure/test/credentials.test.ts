/** Tokens that cannot be renewed. */

import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { failureOf } from '@nodepool/driver-kit';
import { openCloud, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const LIST = 'virtualMachines.list';

let open: OpenCloud;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud();
  test = await TestProvider.started(open);
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
});

const list = (): Promise<unknown> => test.end(test.provider.listNodes(test.call()));

describe('a token that cannot be renewed', () => {
  afterEach(() => void jest.useRealTimers());

  it('is used until it expires, and ends neither the process nor the next login', async () => {
    jest.useFakeTimers({
      doNotFake: ['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
    });
    open.cloud.configure({ tokenSeconds: 60 });
    open.cloud.revokeTokens();
    await list();
    const fault = { kind: 'status', status: 503, code: 'temporarily_unavailable' } as const;
    const outage = open.cloud.faults.add({ on: 'login.token', times: Infinity, fault });
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
