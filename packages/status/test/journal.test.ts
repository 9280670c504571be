/** Tests of the journal of a launcher's history, and of the distributions in it. */

import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import type * as FileSystem from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { silentLogger, type Logger } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import { Distribution } from '../src/history/distribution.js';
import { Journal } from '../src/history/journal.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodepool-history-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

/** Returns a logger that keeps warnings. */
function warnings(): { log: Logger; messages: string[] } {
  const messages: string[] = [];
  return { messages, log: { ...silentLogger, warn: (message) => messages.push(message) } };
}

const files = createRequire(__filename)('node:fs/promises') as typeof FileSystem;

/** Lets the disk have room for this number of bytes; the rest of a write fails as the kernel has it fail. */
function fillDisk(space: number): void {
  let left = space;
  for (const name of ['appendFile', 'writeFile'] as const) {
    const write = files[name];
    jest.spyOn(files, name).mockImplementation(async (file, data, options) => {
      const bytes = Buffer.from(data as string);
      const written = bytes.subarray(0, left);
      left -= written.length;
      await write(file, written, options);
      if (written.length < bytes.length) {
        throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
      }
    });
  }
}

describe('the journal', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });
  const clock = new VirtualClock();
  const journal = (log = silentLogger, maxBytes?: number): Journal =>
    new Journal({ directory, clock, log, ...(maxBytes === undefined ? {} : { maxBytes }) });

  it('skips damaged lines and continues after a truncated line', async () => {
    const first = journal();
    await first.load();
    first.add({ a: 1 });
    await first.close();
    await writeFile(first.file, `${await readFile(first.file, 'utf8')}{"a": 2`);
    const { log, messages } = warnings();
    const second = journal(log);
    expect(await second.load()).toEqual([{ a: 1 }]);
    expect(messages).toEqual(['Lines of the history are damaged and were skipped']);
    second.add({ a: 3 });
    await second.close();
    expect(await journal().load()).toEqual([{ a: 1 }, { a: 3 }]);
  });

  it('sets aside a file of another version and starts a new one', async () => {
    const { log, messages } = warnings();
    const of = journal(log);
    await writeFile(of.file, '{"format":"nodepool-history","version":2,"begun":0}\n{"a":1}\n');
    expect(await of.load()).toEqual([]);
    await of.close();
    expect(messages).toEqual(['The history is not in the format of this version; a new one is started']);
    expect((await readdir(directory)).sort()).toEqual(['launcher-history.jsonl', 'launcher-history.jsonl.unreadable']);
  });

  it('replaces the file before the present one when that is large', async () => {
    const of = journal(silentLogger, 200);
    await of.load();
    for (let a = 0; a < 50; a += 1) {
      of.add({ a });
      await clock.advance(10_000);
    }
    await of.close();
    const entries = (await journal().load()) as { a: number }[];
    expect(entries.at(-1)).toEqual({ a: 49 });
    expect(entries.length).toBeLessThan(50);
    expect(entries.length).toBeGreaterThan(15);
  });

  async function added(of: Journal, entry: object): Promise<void> {
    of.add(entry);
    await of.flush();
  }

  it.each([0, 1, 20, 60, 65, 70])('survives a process that is killed after %d bytes', async (length) => {
    const first = journal();
    await first.load();
    await added(first, { a: 1 });
    await added(first, { a: 2 });
    await truncate(first.file, length);
    const second = journal();
    const survived = await second.load();
    await added(second, { a: 3 });
    await second.close();
    expect(await journal().load()).toEqual([...survived, { a: 3 }]);
  });

  it('survives a full disk, and continues when there is space again', async () => {
    const { log, messages } = warnings();
    const of = journal(log);
    await of.load();
    await added(of, { a: 1 });
    fillDisk(5);
    await added(of, { lost: 1 });
    await added(of, { lost: 2 });
    expect(of.healthy).toBe(false);
    jest.restoreAllMocks();
    await added(of, { a: 2 });
    expect(of.healthy).toBe(true);
    await of.close();
    expect(messages).toEqual(['The history cannot be written; it is lost at the next restart']);
    expect(await journal().load()).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it.each([0, 20])('keeps the previous file if a full disk has only %d bytes for the next one', async (space) => {
    const of = journal(silentLogger, 100);
    await of.load();
    await added(of, { a: 'x'.repeat(100) });
    fillDisk(space);
    await added(of, { lost: 1 });
    await added(of, { lost: 2 });
    jest.restoreAllMocks();
    await added(of, { a: 2 });
    await of.close();
    expect(await journal().load()).toEqual([{ a: 'x'.repeat(100) }, { a: 2 }]);
  });

  it('is read from a full disk', async () => {
    const first = journal();
    await first.load();
    await added(first, { a: 1 });
    await first.close();
    await truncate(first.file, (await readFile(first.file)).length - 1);
    fillDisk(0);
    const { log, messages } = warnings();
    const second = journal(log);
    expect(await second.load()).toEqual([{ a: 1 }]);
    expect([second.healthy, messages]).toEqual([
      false,
      ['The history cannot be written; it is lost at the next restart'],
    ]);
  });

  it('leaves the file to another launcher that writes it', async () => {
    const { log, messages } = warnings();
    const first = journal(log);
    await first.load();
    const second = journal(log);
    await second.load();
    await added(first, { first: 1 });
    await added(second, { second: 1 });
    await added(first, { first: 2 });
    await added(second, { second: 2 });
    expect([first.healthy, second.healthy]).toEqual([true, false]);
    await Promise.all([first.close(), second.close()]);
    expect(messages).toEqual(['Another program writes the history of this launcher; it is kept in memory only']);
    expect(await journal().load()).toEqual([{ first: 1 }, { first: 2 }]);
  });

  it('starts a file again that an operator has deleted', async () => {
    const of = journal();
    await of.load();
    await added(of, { a: 1 });
    await rm(of.file);
    await added(of, { a: 2 });
    await of.close();
    expect(await journal().load()).toEqual([{ a: 2 }]);
  });
});

it('quantiles are exact to a few percent, also when distributions are merged', () => {
  const [even, odd] = [new Distribution(), new Distribution()];
  for (let ms = 1; ms <= 1000; ms += 1) (ms % 2 === 0 ? even : odd).add(ms * 10);
  even.merge(Distribution.from(JSON.parse(JSON.stringify(odd)) as object));
  expect(even.count).toBe(1000);
  expect(even.quantile(0.5)! / 5000).toBeCloseTo(1, 1);
  expect(even.quantile(0.95)! / 9500).toBeCloseTo(1, 1);
  expect(even.mean).toBe(5005);
  expect(new Distribution().quantile(0.5)).toBeNull();
});
