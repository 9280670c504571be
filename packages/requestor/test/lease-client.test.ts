/** The client of the gateway, when the gateway or the network is in trouble. */

import { describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { GatewayUnreachableError, LeaseClient, LeaseEndedError, LeaseRequestError } from '../src/http/index.js';

type Answer = () => Response | Promise<Response>;

/** A network whose answers are scripted; the last one repeats. */
class Network {
  readonly clock = new VirtualClock();
  readonly requests: { readonly url: string; readonly headers: Headers; readonly options: RequestInit }[] = [];
  private readonly script: Answer[];

  constructor(...script: Answer[]) {
    this.script = script;
  }

  client(token: string | (() => string) = 'secret'): LeaseClient {
    const { clock } = this;
    return new LeaseClient({
      ...{ url: 'https://gateway.example/', token, clock, random: seededRandom(1) },
      fetch: (url, options = {}) => {
        this.requests.push({ url: url as string, headers: new Headers(options.headers), options });
        const answer = this.script.length > 1 ? this.script.shift() : this.script[0];
        return Promise.resolve().then(() => answer?.() ?? lost());
      },
    });
  }

  async run<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    work.then(done, done);
    await this.clock.runUntil(() => settled, 600_000);
    return work;
  }
}

const LEASE = { id: 'a'.repeat(32), state: 'waiting', reasons: [], end: null };

const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Answer => {
  const text = JSON.stringify(body);
  return () => new Response(text, { status, headers });
};
const problem = (status: number, code: string, headers: Record<string, string> = {}): Answer =>
  json({ type: `urn:nodepool:problem:${code}`, title: 'Title', status, detail: 'detail', code }, status, headers);
const page =
  (status: number): Answer =>
  () =>
    new Response('<html>proxy</html>', { status });
const lost = (): never => {
  throw new TypeError('fetch failed');
};
const stream = (...leases: readonly object[]): Answer => {
  const events = leases.map((lease) => `event: lease\ndata: ${JSON.stringify(lease)}\n\n`).join('');
  return () => new Response(`retry: 1000\n\n: alive\n\n${events}`);
};
/** The beginning of an answer whose rest never arrives. */
function silent(beginning: string): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(beginning)) });
}

it('repeats a creation with the same key until it is answered', async () => {
  const network = new Network(
    lost,
    page(502),
    problem(503, 'unavailable'),
    problem(429, 'rate-limit'),
    json(LEASE, 201),
  );
  const lease = await network.run(network.client().create({ labels: ['debian'] }));
  expect(lease.id).toBe(LEASE.id);
  expect(network.requests).toHaveLength(5);
  const keys = new Set(network.requests.map(({ headers }) => headers.get('idempotency-key')));
  expect([keys.size, [...keys][0]]).toEqual([1, expect.stringMatching(/^[0-9a-f]{32}$/)]);
  for (const { url, options } of network.requests) {
    expect([url, options.method, options.body]).toEqual([
      'https://gateway.example/v1/leases',
      'POST',
      '{"labels":["debian"]}',
    ]);
    // A redirect would send the token elsewhere.
    expect(options.redirect).toBe('error');
  }
});

it('waits as long as the gateway asks for', async () => {
  const network = new Network(problem(429, 'rate-limit', { 'Retry-After': '30' }), json(LEASE));
  const before = network.clock.monotonic();
  await network.run(network.client().get(LEASE.id));
  expect(network.clock.monotonic() - before).toBeGreaterThanOrEqual(30_000);
});

it.each([
  [400, 'bad-request'],
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, 'not-found'],
  [409, 'conflict'],
  [422, 'key-reused'],
  [429, 'quota'],
])('does not repeat a request that is refused: %i %s', async (status, code) => {
  const network = new Network(problem(status, code));
  const refused = network.run(network.client().renew(LEASE.id));
  await expect(refused).rejects.toThrow(LeaseRequestError);
  await expect(refused).rejects.toMatchObject({ status, code });
  expect(network.requests).toHaveLength(1);
});

it.each([
  ['is not reached', lost],
  ['is replaced by the page of a proxy', page(502)],
])('gives up after a minute if the gateway %s', async (_, answer) => {
  const network = new Network(answer);
  const failed = network.run(network.client().get(LEASE.id));
  await expect(failed).rejects.toThrow(answer === lost ? GatewayUnreachableError : LeaseRequestError);
  expect(network.clock.monotonic()).toBeLessThan(70_000);
  expect(network.requests.length).toBeGreaterThan(5);
});

it('ends an attempt without an answer, and a call whose signal aborts', async () => {
  const hanging: Answer = () => new Promise<Response>(() => undefined);
  const network = new Network(hanging);
  const controller = new AbortController();
  const client = network.client();
  const call = client.get(LEASE.id, { signal: controller.signal });
  call.catch(() => undefined);
  await network.clock.advance(1000);
  expect(network.requests[0]?.options.signal?.aborted).toBe(false);
  await network.clock.advance(20_000);
  expect(network.requests[0]?.options.signal?.aborted).toBe(true);
  controller.abort(new Error('stop'));
  expect(network.requests.at(-1)?.options.signal?.aborted).toBe(true);
});

it('ends an answer that stops in the middle, even if fetch misses the signal', async () => {
  const network = new Network(() => new Response(silent('{"id":')), json(LEASE));
  expect((await network.run(network.client().get(LEASE.id))).id).toBe(LEASE.id);
  expect(network.requests).toHaveLength(2);
});

it('reads the token for each request, and reports its error at once', async () => {
  let count = 0;
  const network = new Network(json(LEASE));
  const client = network.client(() => `token-${++count}`);
  await network.run(client.get(LEASE.id));
  await network.run(client.get(LEASE.id));
  expect(network.requests.map(({ headers }) => headers.get('authorization'))).toEqual([
    'Bearer token-1',
    'Bearer token-2',
  ]);
  const failing = network.client(() => {
    throw new Error('no such file');
  });
  await expect(network.run(failing.get(LEASE.id))).rejects.toThrow('no such file');
  expect(network.requests).toHaveLength(2);
});

describe('a followed lease', () => {
  const ready = { ...LEASE, state: 'ready' };
  const ended = { ...LEASE, state: 'ended', reasons: ['it is over'], end: { reason: 'lost' } };

  it('is followed over broken streams, without repetitions, until it ends', async () => {
    const network = new Network(stream(LEASE), lost, stream(LEASE, ready), page(504), stream(ready, ended));
    const seen: string[] = [];
    const following = (async (): Promise<void> => {
      for await (const { state } of network.client().follow(LEASE.id)) seen.push(state);
    })();
    await network.run(following);
    expect(seen).toEqual(['waiting', 'ready', 'ended']);
  });

  it('is followed until the signal aborts, even if fetch misses that', async () => {
    const network = new Network(() => new Response(silent(`event: lease\ndata: ${JSON.stringify(LEASE)}\n\n`)));
    const stop = new AbortController();
    const following = (async (): Promise<void> => {
      for await (const { state } of network.client().follow(LEASE.id, { signal: stop.signal })) {
        if (state === 'waiting') network.clock.schedule(1000, () => stop.abort(new Error('stop')));
      }
    })();
    await expect(network.run(following)).rejects.toThrow('stop');
    expect(network.clock.monotonic()).toBeLessThan(30_000);
    expect(network.requests).toHaveLength(1);
  });

  it('is ready, or has ended before', async () => {
    const good = new Network(stream(LEASE), stream(ready));
    expect((await good.run(good.client().ready(LEASE.id))).state).toBe('ready');
    const bad = new Network(stream(LEASE, ended));
    const waiting = bad.run(bad.client().ready(LEASE.id));
    await expect(waiting).rejects.toThrow(LeaseEndedError);
    await expect(waiting).rejects.toThrow('ended: lost: it is over');
  });

  it('is refused if it does not exist', async () => {
    const network = new Network(problem(404, 'not-found'));
    await expect(network.run(network.client().ready(LEASE.id))).rejects.toMatchObject({ code: 'not-found' });
  });
});

it('lists all pages', async () => {
  const network = new Network(json({ leases: [LEASE], next: 'cursor/1' }), json({ leases: [LEASE], next: null }));
  const listing = (async (): Promise<number> => {
    let count = 0;
    for await (const _lease of network.client().list({ state: 'waiting', name: 'a b' })) count++;
    return count;
  })();
  expect(await network.run(listing)).toBe(2);
  expect(network.requests.map(({ url }) => url.replace('https://gateway.example', ''))).toEqual([
    '/v1/leases?state=waiting&name=a+b',
    '/v1/leases?state=waiting&name=a+b&after=cursor%2F1',
  ]);
});
