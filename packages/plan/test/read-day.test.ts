/** Tests of reading journals and files of requests, which may contain anything. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { DayError, readDay, type Day } from '../src/index.js';

const START = 1_790_000_000;

function day(...objects: readonly (object | string)[]): Promise<Day> {
  const lines = objects.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  return readDay([{ name: 'day.jsonl', lines }]);
}

it('a request needs a time, a label and its use', async () => {
  const { requests, fromMs, toMs } = await day(
    { created: '2026-09-21T14:13:25Z', labels: ['small', 'large'], held: [1, 2.5], priority: 100, tenant: 'a' },
    '',
    { created: START, label: 'small', held: 60 },
  );
  expect(requests.map(({ createdMs }) => createdMs)).toEqual([START * 1000, START * 1000 + 5000]);
  expect(requests.map(({ held }) => held)).toEqual([[{ ms: 60_000 }], [{ ms: 1000 }, { ms: 2500 }]]);
  expect(requests.map(({ priority, tenant }) => [priority, tenant])).toEqual([
    [200, null],
    [100, 'a'],
  ]);
  expect([fromMs, toMs]).toEqual([START * 1000, START * 1000 + 5001]);
});

it('reads the documented requests', async () => {
  const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'planning.md'), 'utf8');
  const [, text = ''] = /```json\n(.*?)```/s.exec(page) ?? [];
  const { requests, notes } = await day(...text.split('\n'));
  expect(requests.map(({ labels }) => labels)).toEqual([['debian', 'debian-large'], ['debian']].reverse());
  expect(notes).toEqual([]);
});

it('names wrong lines with their numbers', async () => {
  const good = { created: START, label: 'small', held: 1 };
  const wrong: readonly [object | string, string][] = [
    ['{', 'it is not JSON'],
    ['[]', 'it is not a JSON object'],
    [{ label: 'small' }, '"created" is missing'],
    [{ ...good, created: START * 1000 }, '"created" must be unix seconds'],
    [{ ...good, created: 'yesterday' }, '"created" must be unix seconds'],
    [{ created: START }, '"labels" is missing'],
    [{ created: START, labels: [] }, 'a request has 1 to 1000 labels, not 0'],
    [{ ...good, label: 7 }, '"label" must be a text, not 7'],
    [{ ...good, held: -1 }, '"held" must be a number of seconds'],
    [{ ...good, held: [1, 2] }, '"held" has 2 numbers for 1 labels'],
    [{ ...good, priority: 1000 }, '"priority" must be a number from 0 to 999, not 1000'],
    [{ ...good, result: 'lost' }, '"result" must be one of fulfilled, failed, cancelled'],
    [{ kind: 'nodes' }, '"kind" must be one of request, node, provider, journal, not "nodes"'],
    [{ kind: 'journal', version: 9, since: 0, until: 0 }, 'version 9 of the journal is not known, only 1'],
    [{ kind: 'provider', provider: 'alpha', limit: { instances: 'many' } }, '"limit" must be amounts by resource'],
    ['x'.repeat(1_000_001), 'it is longer than 1000000 characters'],
  ];
  for (const [line, message] of wrong) {
    await expect(day(good, line)).rejects.toThrow(new RegExp(`day.jsonl, line 2: ${message.replace(/[[\]]/g, '.')}`));
  }
  const many = day(...Array.from({ length: 100 }, () => '{'));
  await expect(many).rejects.toThrow(/line 20: it is not JSON\n {2}and possibly more$/);
  await expect(many).rejects.toBeInstanceOf(DayError);
});

it('refuses a day without requests, and mentions unknown keys', async () => {
  await expect(day()).rejects.toThrow('day.jsonl: there are no requests to replay');
  const { notes } = await day({ created: START, label: 'small', hold: 60 });
  expect(notes).toEqual([
    'These keys are not known and were ignored: "hold".',
    'The use of nodes is not known for 1 of 1 requests; it is drawn from the others.',
  ]);
});

it('refuses texts that would change a terminal, and times that would make a replay endless', async () => {
  const request = { created: START, label: 'small', held: 60 };
  await expect(day({ ...request, label: '\u001b[31msmall' })).rejects.toThrow(
    '"label" must be a text, not "\\u001b[31m',
  );
  await expect(day({ ...request, labels: ['a\u009b'], label: undefined })).rejects.toThrow('not ["a\u{fffd}"]');
  await expect(day({ ...request, created: 0 }, request)).rejects.toThrow('at most 31 can be replayed; set --since');
  const header = { kind: 'journal', version: 1, since: START + 1, until: START };
  await expect(day(header, request)).rejects.toThrow('line 1: "until" is before "since"');
});

it('combines the journals of several launchers', async () => {
  const header = { kind: 'journal', version: 1, until: START + 7200 };
  const request = { kind: 'request', id: '100-0000000001', created: START + 10, labels: ['small'], requestor: 'zuul' };
  const ended = { ...request, result: 'fulfilled', waited: 30, nodes: ['0000000007'] };
  const node = { kind: 'node', id: '0000000007', labels: ['small'], provider: 'alpha', pool: 'main', used: 300 };
  const attempt = { at: START + 11, pool: 'alpha/main', label: 'small', creating: 20, booting: 5, login: 1 };
  const attempts = [
    { ...attempt, result: 'keyscan' },
    { ...attempt, result: 'ready' },
    { ...attempt, result: 'quota' },
  ];
  const first = [
    { ...header, since: START + 3600 },
    { kind: 'provider', provider: 'alpha', limit: { instances: 20 } },
    { ...request, id: '100-0000000002', requestor: 'NodePool:min-ready' },
    { ...node, attempts },
    request,
  ];
  const second = [{ ...header, since: START }, ended, { ...node, attempts: [], deleting: 4 }];
  const sources = [first, second].map((lines, index) => ({
    name: `launcher ${index}`,
    lines: lines.map((line) => JSON.stringify(line)),
  }));
  const { requests, launches, limits, fromMs, toMs } = await readDay(sources);
  expect([fromMs, toMs]).toEqual([START * 1000, (START + 7200) * 1000]);
  expect(requests).toMatchObject([
    { priority: 100, held: [{ ms: 300_000 }], recorded: { result: 'fulfilled', waitedMs: 30_000 } },
  ]);
  expect(launches.map(({ provider, result }) => [provider, result])).toEqual([
    ['alpha', 'keyscan'],
    ['alpha', 'ready'],
  ]);
  expect(limits.get('alpha')).toEqual({ instances: 20 });
});

it('the end of a request is taken from the launcher that served it', async () => {
  const header = { kind: 'journal', version: 1, since: START, until: START + 3600 };
  const request = { id: '1', created: START + 60, labels: ['small'] };
  const unseen = request;
  const cancelled = { ...request, result: 'cancelled', waited: 31 };
  const fulfilled = { ...request, result: 'fulfilled', waited: 30 };
  for (const lines of [
    [unseen, cancelled, fulfilled],
    [fulfilled, cancelled, unseen],
  ]) {
    const { requests } = await day(header, ...lines);
    expect(requests).toMatchObject([{ recorded: { result: 'fulfilled', waitedMs: 30_000 }, patienceMs: undefined }]);
  }
});

it('nodes in use at the start remain in use, without being measured', async () => {
  const header = { kind: 'journal', version: 1, since: START, until: START + 86_400 };
  const before = { created: START - 600, label: 'small' };
  const { requests } = await day(
    header,
    { ...before, id: '1', held: 900, result: 'fulfilled', waited: 100 },
    { ...before, id: '2', held: 60, result: 'fulfilled', waited: 100 },
    { ...before, id: '3', result: 'failed', waited: 100 },
    { created: START + 1, label: 'small', held: 1 },
  );
  expect(requests.map(({ createdMs, held, isInitial }) => [createdMs, held, isInitial])).toEqual([
    [START * 1000, [{ ms: 400_000 }], true],
    [(START + 1) * 1000, [{ ms: 1000 }], false],
  ]);
});
