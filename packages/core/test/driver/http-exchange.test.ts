/** Redirects, and what messages say about an answer. */

import { describe, expect, it } from '@jest/globals';
import { answerText, HttpExchange, retryAfterMsIn, serverTime } from '../../src/index.js';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends a call whose requests get these answers, and returns the addresses of the requests. */
async function send(url: string, answers: readonly Answer[], method = 'GET', http = new HttpExchange('get it')) {
  const sent: string[] = [];
  const answer = await http.send(url, { method }, async (at) => {
    sent.push(at);
    return answers[sent.length - 1] ?? { status: 200, headers: {} };
  });
  return { answer, sent };
}

const moved = (location: string, status = 302): Answer => ({ status, headers: { location } });

describe('a redirect', () => {
  it.each([
    ['to another path', 'http://acme.example/v3', '/v3/', 'http://acme.example/v3/'],
    [
      'from http to https',
      'http://acme.example:5000/v3',
      'https://acme.example:5000/v3',
      'https://acme.example:5000/v3',
    ],
    [
      'to https at another port',
      'http://acme.example/v3',
      'https://acme.example:13000/',
      'https://acme.example:13000/',
    ],
    ['with a user name', 'https://acme.example/v3', 'https://u:p@acme.example/v4#a', 'https://acme.example/v4'],
    ['relative to the first', 'https://acme.example/a/b', 'c?d=1', 'https://acme.example/a/c?d=1'],
  ])('is followed %s', async (_what, url, location, expected) => {
    expect((await send(url, [moved(location)])).sent).toEqual([url, expected]);
  });

  it.each([
    [
      'to another host',
      'https://evil.example/',
      /acme\.example answered with status 302: it redirects to evil\.example/,
    ],
    [
      'to a host that begins like it',
      'https://acme.example.evil.example/',
      /redirects to acme\.example\.evil\.example/,
    ],
    ['to a subdomain', 'https://api.acme.example/', /it redirects to api\.acme\.example/],
    ['from https to http', 'http://acme.example/', /without TLS/],
    ['to a file', 'file://acme.example/etc/passwd', /without TLS/],
    ['to an invalid address', 'https://', /invalid address/],
  ])('is refused %s', async (_what, location, message) => {
    const refused = send('https://acme.example/v3', [moved(location)]);
    await expect(refused).rejects.toMatchObject({ code: 'transient', outcome: 'not-applied' });
    await expect(refused).rejects.toThrow(message);
  });

  it.each([300, 303, 304, 305])('of status %i is refused, with an unknown outcome of a change', async (status) => {
    const refused = send('https://acme.example/', [moved('/', status)], 'POST');
    await expect(refused).rejects.toMatchObject({ code: 'transient', outcome: 'unknown' });
  });

  it('to itself ends after a few requests', async () => {
    const loop = Array.from({ length: 50 }, () => moved('/'));
    await expect(send('https://acme.example/', loop)).rejects.toThrow('5 redirects in a row');
  });
});

describe('a message', () => {
  it('names the host, the status and the content type', async () => {
    const http = new HttpExchange('get it');
    await send(
      'https://acme.example:5000/',
      [{ status: 502, headers: { 'content-type': 'text/html; a=b' } }],
      'GET',
      http,
    );
    expect(http.explain('it failed')).toBe('it failed (answer of acme.example:5000: 502, text/html)');
    expect(http.explain(http.explain('it failed'))).toBe(http.explain('it failed'));
  });

  it('names the wait that the cloud demands, as the cloud writes it', async () => {
    const http = new HttpExchange('get it');
    await send('https://acme.example/', [{ status: 503, headers: { 'retry-after': '600' } }], 'GET', http);
    expect(http.explain('it failed')).toBe('it failed (answer of acme.example: 503, Retry-After: 600)');
  });

  it('names the host and the reason if there was no answer', async () => {
    const http = new HttpExchange('get it');
    const refused = Object.assign(new Error('connect ECONNREFUSED 192.0.2.1:443'), { code: 'ECONNREFUSED' });
    await expect(
      http.send('https://acme.example/', { method: 'GET' }, () => Promise.reject(refused)),
    ).rejects.toThrow();
    const reason = 'no answer of acme.example: connect ECONNREFUSED 192.0.2.1:443';
    expect(http.explain('the login failed')).toBe(`the login failed (${reason})`);
  });
});

it('a date in Retry-After is read with the date of the answer', () => {
  const date = 'Thu, 26 Nov 2026 12:00:00 GMT';
  const behind = Date.parse(date) - 7_200_000;
  expect(retryAfterMsIn('Thu, 26 Nov 2026 12:00:10 GMT', serverTime(date, behind))).toBe(10_000);
  expect(serverTime(undefined, behind)).toBe(behind);
  expect(serverTime('soon', behind)).toBe(behind);
});

describe('the text of an answer', () => {
  it('ends with the signal although the stream misses it, and the stream is cancelled', async () => {
    const reasons: unknown[] = [];
    const silent = new ReadableStream({
      start: (stream) => stream.enqueue(Buffer.from('the begin')),
      cancel: (reason) => void reasons.push(reason),
    });
    const stop = new AbortController();
    const reading = answerText(silent, { signal: stop.signal });
    const reason = new Error('the deadline');
    stop.abort(reason);
    await expect(reading).rejects.toBe(reason);
    expect(reasons).toEqual([reason]);
  });

  it('is complete if the signal does not abort', async () => {
    const pieces = new Response('a long text');
    expect(await answerText(pieces.body, { signal: new AbortController().signal })).toBe('a long text');
    await expect(answerText(new Response('too long').body, { maxBytes: 3 })).rejects.toThrow(RangeError);
  });
});
