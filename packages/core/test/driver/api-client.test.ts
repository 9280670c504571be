/** The client of all calls: turns, limits, credentials, foreign answers, metrics, and outcomes. */

import { VirtualClock } from '@nodepool/core/testing';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  ApiClient,
  AuthError,
  NO_CREDENTIALS,
  QuotaError,
  silentLogger,
  sleep,
  ThrottledError,
  toDriverError,
  TransientError,
  type AnswerHead,
  type ApiCall,
  type ApiClientOptions,
  type ApiCredentials,
  type ApiRequest,
  type Attempted,
  type Call,
  type Refusal,
} from '../../src/index.js';
import { creationError } from '../../src/driver/applied-calls.js';
import { oldestCall } from '../../src/driver/open-calls.js';
import { watch } from './provider-harness.js';

const READ = { service: 'compute', method: 'GET', operation: 'servers' };
const WRITE = { service: 'compute', method: 'POST', operation: 'servers' };

let clock: VirtualClock;
let calls: ApiCall[];
let events: string[];

beforeEach(() => {
  clock = new VirtualClock();
  calls = [];
  events = [];
});

function client<C = undefined>(
  options: Partial<ApiClientOptions<C>> & Pick<ApiClientOptions<C>, 'credentials'>,
): ApiClient<C> {
  return new ApiClient<C>({ clock, onApiCall: (call) => calls.push(call), errorOf: toDriverError, ...options });
}

const plain = (options: Partial<ApiClientOptions<undefined>> = {}): ApiClient =>
  client({ credentials: NO_CREDENTIALS, ...options });

function call(changes: Partial<Call> = {}): Call {
  return { signal: new AbortController().signal, deadline: Infinity, log: silentLogger, ...changes };
}

/** Sends a call that takes a time, and records its start. */
function timed(api: ApiClient, name: string, ms: number, request: Partial<ApiRequest<string>> = {}, own = call()) {
  return watch(
    api.send({ ...READ, ...request, name }, own, async ({ signal }) => {
      events.push(`${name} at ${clock.monotonic()}`);
      await sleep(clock, ms, signal);
      return name;
    }),
  );
}

describe('turns', () => {
  it('limit the calls in progress of a lane, and the rate of all', async () => {
    const api = plain({ callsPerSecond: 10 });
    const lane = api.lane({ atOnce: 1 });
    for (const name of ['a', 'b']) timed(api, name, 1000, { lane });
    timed(api, 'c', 1);
    expect(lane.queueLength).toBe(1);
    await clock.advance(5000);
    expect(events).toEqual(['a at 0', 'c at 100', 'b at 1000']);
  });

  it('alternate between lanes, so that reads do not wait for all writes', async () => {
    const api = plain({ callsPerSecond: 10 });
    const [reads, writes] = [api.lane({}), api.lane({})];
    for (const name of ['w1', 'w2', 'w3']) timed(api, name, 1, { ...WRITE, lane: writes });
    timed(api, 'r1', 1, { lane: reads });
    await clock.advance(1000);
    expect(events.map((event) => event.slice(0, 2))).toEqual(['w1', 'w2', 'r1', 'w3']);
  });

  it('of a lane with a rate of its own do not depend on the others', async () => {
    const api = plain({ callsPerSecond: 1 });
    const lane = api.lane({ callsPerSecond: 10 });
    for (const name of ['a', 'b']) timed(api, name, 1);
    for (const name of ['c', 'd']) timed(api, name, 1, { lane });
    timed(api, 'transfer', 1, { lane: 'none' });
    await clock.advance(2000);
    expect(events).toEqual(['a at 0', 'c at 0', 'transfer at 0', 'd at 100', 'b at 1000']);
  });

  it('do not count against deadlines', async () => {
    const api = plain({ callsPerSecond: 0.1 });
    timed(api, 'a', 1);
    const waiting = timed(api, 'b', 400, {}, call({ deadline: 500 }));
    const slow = timed(api, 'c', 600, {}, call({ deadline: 500 }));
    await clock.advance(30_000);
    expect(await waiting.promise).toBe('b');
    await expect(slow.promise).rejects.toMatchObject({ code: 'timeout', message: expect.stringContaining('(500 ms)') });
  });

  it('do not count against the deadline of later calls of the same work', async () => {
    const api = plain({ callsPerSecond: 0.1 });
    const own = call({ deadline: 500 });
    timed(api, 'a', 1);
    const work = watch(timed(api, 'b', 100, {}, own).promise.then(() => timed(api, 'c', 100, {}, own).promise));
    await clock.advance(30_000);
    expect(await work.promise).toBe('c');
    expect(events).toEqual(['a at 0', 'b at 10000', 'c at 20000']);
    await expect(timed(api, 'd', 1e6, {}, own).promise).rejects.toMatchObject({ code: 'timeout' });
  });

  it('are paused and slowed down by a throttled call', async () => {
    const api = plain({ callsPerSecond: 10 });
    const throttled = new ThrottledError('429', { retryAfterMs: 5000 });
    await expect(api.send(READ, call(), () => Promise.reject(throttled))).rejects.toBe(throttled);
    for (const name of ['a', 'b']) timed(api, name, 1);
    await clock.advance(10_000);
    expect(events).toEqual(['a at 5000', 'b at 5200']);
  });

  it('of one service are paused alone if the client says so', async () => {
    const api = plain({ pauses: 'service' });
    const lane = api.lane({ atOnce: 1 });
    const throttled = new ThrottledError('429', { retryAfterMs: 5000 });
    await expect(api.send({ ...READ, lane }, call(), () => Promise.reject(throttled))).rejects.toBe(throttled);
    timed(api, 'same', 1, { lane });
    timed(api, 'other', 1, { lane, service: 'image' });
    await clock.advance(10_000);
    expect(events.map((event) => event.split(' ')[0])).toEqual(['other', 'same']);
    expect(events[1]).toBe('same at 5000');
  });

  it('end when the signal of a waiting call aborts, or the client stops, without effect', async () => {
    const api = plain({ callsPerSecond: 1 });
    const controller = new AbortController();
    timed(api, 'a', 1);
    const aborted = timed(api, 'b', 1, WRITE, call({ signal: controller.signal }));
    const stopped = timed(api, 'c', 1, WRITE);
    controller.abort();
    await expect(aborted.promise).rejects.toMatchObject({ code: 'aborted', outcome: 'not-applied' });
    api.stop();
    await expect(stopped.promise).rejects.toMatchObject({ code: 'aborted', outcome: 'not-applied' });
    await expect(timed(api, 'd', 1).promise).rejects.toMatchObject({ message: 'd: the provider was stopped' });
    expect(events).toEqual(['a at 0']);
  });

  it('end ten seconds after a call that ignores its signal was abandoned', async () => {
    const api = plain();
    const lane = api.lane({ atOnce: 1 });
    const stuck = watch(api.send({ ...READ, lane }, call({ deadline: 50 }), () => new Promise(() => undefined)));
    timed(api, 'b', 1, { lane });
    await clock.advance(60_000);
    await expect(stuck.promise).rejects.toMatchObject({ code: 'timeout' });
    expect(events).toEqual(['b at 10050']);
  });
});

describe('a call without an answer', () => {
  it.each([
    ['GET', 'not-applied'],
    ['POST', 'unknown'],
  ] as const)('has the outcome of its method: %s, %s', async (method, outcome) => {
    const api = plain();
    const controller = new AbortController();
    const late = timed(api, 'late', 1e6, { method }, call({ deadline: 50 }));
    const aborted = timed(api, 'aborted', 1e6, { method }, call({ signal: controller.signal }));
    const foreign = api.send({ ...READ, method, foreign: () => 'the page of a proxy' }, call(), () =>
      Promise.resolve({}),
    );
    await expect(foreign).rejects.toMatchObject({
      code: 'transient',
      outcome,
      message: `compute: ${method} servers: the page of a proxy`,
    });
    await clock.advance(100);
    controller.abort();
    await expect(late.promise).rejects.toMatchObject({ code: 'timeout', outcome });
    await expect(aborted.promise).rejects.toMatchObject({ code: 'aborted', outcome });
    expect(calls.map(({ status }) => status)).toEqual(['transient', undefined, undefined]);
  });

  it('is not sent after its deadline or an abort', async () => {
    const api = plain();
    await clock.advance(100);
    const signal = AbortSignal.abort(new Error('no longer needed'));
    await expect(timed(api, 'a', 1, WRITE, call({ deadline: 100 })).promise).rejects.toMatchObject({
      code: 'timeout',
      outcome: 'not-applied',
    });
    await expect(timed(api, 'b', 1, WRITE, call({ signal })).promise).rejects.toMatchObject({
      code: 'aborted',
      outcome: 'not-applied',
    });
    expect([events, calls]).toEqual([[], []]);
  });
});

describe('an answer', () => {
  const refused = Object.assign(new Error('slow down, token-0123456789'), {
    $response: { statusCode: 429, headers: { date: 'Thu, 01 Jan 1970 05:00:00 GMT', 'retry-after': '' } },
  });

  it('of an SDK tells its status, its wait by the clock of the cloud, and no secret', async () => {
    const attempts: Attempted[] = [];
    const { headers } = refused.$response;
    headers['retry-after'] = 'Thu, 01 Jan 1970 05:00:07 GMT';
    const api = plain({
      secrets: () => ['token-0123456789'],
      answerIn: () => ({ status: 429, headers }),
      errorOf: (error, attempted) => {
        attempts.push(attempted);
        return new ThrottledError(`${attempted.operation}: ${(error as Error).message}`, { cause: error });
      },
    });
    const failure = await api.send(READ, call(), () => Promise.reject(refused)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'throttled', message: 'compute: GET servers: slow down, [secret]' });
    expect(attempts).toMatchObject([{ changesSomething: false, now: 18_000_000, retryAfterMs: 7000 }]);
    expect(calls).toMatchObject([{ ...READ, status: 429 }]);
  });

  it('over HTTP is reported with its status', async () => {
    const api = plain();
    await api.send(READ, call(), ({ http }) =>
      http.send('https://acme.example/', { method: 'GET' }, async () => ({ status: 204, headers: {} })),
    );
    await api.send(READ, call(), () => Promise.resolve('of an SDK'));
    expect(calls.map(({ status }) => status)).toEqual([204, 'ok']);
  });
});

describe('credentials', () => {
  /** Credentials that are replaced by the next ones when they are refused. */
  class Source implements ApiCredentials<string> {
    readonly refusals: (Refusal & { readonly used: string })[] = [];

    constructor(private readonly names: string[]) {}

    get(): Promise<string> {
      return Promise.resolve(this.names[0] ?? 'none');
    }

    renew(used: string, refusal: Refusal): boolean {
      this.refusals.push({ ...refusal, used });
      if (this.names.length === 1) return false;
      this.names.shift();
      return true;
    }
  }

  const refusing = (bad: RegExp) => {
    const used: string[] = [];
    const send = async ({ credentials }: { readonly credentials: string }): Promise<string> => {
      used.push(credentials);
      if (bad.test(credentials)) throw new AuthError(`${credentials} is refused`);
      return credentials;
    };
    return { used, send };
  };

  it('that were refused are read again, and the call is repeated once, in its turn', async () => {
    const source = new Source(['old', 'new']);
    const api = client({ credentials: source, callsPerSecond: 1 });
    const { used, send } = refusing(/old/);
    const result = watch(api.send(WRITE, call(), send));
    await clock.advance(2000);
    expect(await result.promise).toBe('new');
    expect(used).toEqual(['old', 'new']);
    expect(source.refusals).toMatchObject([{ used: 'old', error: { code: 'auth' }, status: undefined }]);
    expect(calls.map(({ status }) => status)).toEqual(['auth', 'ok']);
    expect(clock.monotonic()).toBe(2000);
  });

  it.each([
    ['there are no others', ['old'], ['old']],
    ['the others are refused, too', ['old', 'older', 'oldest'], ['old', 'older']],
  ])('that were refused fail the call if %s', async (_what, names, expected) => {
    const { used, send } = refusing(/old/);
    const api = client({ credentials: new Source([...names]) });
    await expect(api.send(WRITE, call(), send)).rejects.toMatchObject({ code: 'auth', outcome: 'not-applied' });
    expect(used).toEqual(expected);
  });

  it('are not read again after other failures', async () => {
    const source = new Source(['old', 'new']);
    const api = client({ credentials: source });
    for (const error of [new QuotaError('full'), new AuthError('refused later', { outcome: 'unknown' })]) {
      await expect(api.send(WRITE, call(), () => Promise.reject(error))).rejects.toBe(error);
    }
    expect(source.refusals).toEqual([]);
  });

  it('that cannot be obtained fail the call without sending it', async () => {
    const failure = new AuthError('no such file');
    const api = client<string>({ credentials: { get: () => Promise.reject(failure), renew: () => true } });
    await expect(api.send(WRITE, call(), () => Promise.resolve('sent'))).rejects.toBe(failure);
    expect(calls).toEqual([]);
  });
});

describe('the outcome of work of several calls', () => {
  const refuse = (): Promise<never> => Promise.reject(new QuotaError('full'));
  const failureOf = (work: Promise<unknown>): Promise<ReturnType<typeof toDriverError>> =>
    work.then(() => Promise.reject(new Error('it succeeded')), toDriverError);

  it.each([
    ['a read', READ, 'not-applied'],
    ['a write', WRITE, 'unknown'],
    ['a write that changes nothing', { ...WRITE, changesSomething: false }, 'not-applied'],
  ] as const)('is that of its last call after %s', async (_what, request, outcome) => {
    const api = plain();
    const own = call();
    await api.send(request, own, () => Promise.resolve('done'));
    const failure = await failureOf(api.send(WRITE, own, refuse));
    expect(creationError(failure, own.signal).outcome).toBe(outcome);
  });

  it('includes the calls of its parts', async () => {
    const api = plain();
    const own = call();
    await api.within('a part', own, (part) => api.send(WRITE, part, () => Promise.resolve('done')));
    const failure = await failureOf(api.send(WRITE, own, refuse));
    expect(creationError(failure, own.signal).outcome).toBe('unknown');
  });

  it('is that which the driver finds out after a lost answer', async () => {
    const api = plain();
    const own = call();
    const lost = await failureOf(api.send(WRITE, own, () => Promise.reject(new TransientError('cut'))));
    const found = new TransientError('cut; there is no such server', { outcome: 'not-applied', cause: lost });
    expect(creationError(found, own.signal).outcome).toBe('not-applied');
  });
});

it('tells which call has waited longest for its answer, and the host of it', async () => {
  const onApiCall = (): void => undefined;
  const api = plain({ onApiCall });
  const send = (operation: string, ms: number, answer: number | undefined): void => {
    void api.send({ ...READ, operation }, call(), async ({ http }) => {
      const send = async (): Promise<AnswerHead> => {
        await sleep(clock, answer ?? ms);
        return { status: 200, headers: {} };
      };
      await http.send(`https://${operation}.example/`, { method: 'GET' }, send);
      if (answer !== undefined) await sleep(clock, ms - answer);
    });
  };
  const failing = timed(api, 'failing', 4, {}, call({ deadline: 2 }));
  send('watch', 9000, 10);
  await clock.advance(5);
  await expect(failing.promise).rejects.toMatchObject({ code: 'timeout' });
  send('slow', 5000, undefined);
  await clock.advance(500);
  send('fast', 5000, undefined);
  expect(oldestCall(onApiCall)).toMatchObject({ name: 'compute: GET slow', host: 'slow.example', startedAt: 5 });
  await clock.advance(4600);
  expect(oldestCall(onApiCall)).toMatchObject({ name: 'compute: GET fast', host: 'fast.example' });
  await clock.advance(4000);
  expect(oldestCall(onApiCall)).toBeUndefined();
});
