/** Log files that are rotated by time, or moved by another program, with configurations of Python. */

import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Clock } from '@nodepool/core';
import { createLogger, type RootLogger } from '../src/logging/create-logger.js';
import { parseLoggingConfig } from '../src/logging/logging-file.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A Friday. */
const START = Date.UTC(2026, 10, 20, 13, 4, 49);

let folder: string;
let time = START;
const clock: Clock = { now: () => time, monotonic: () => time, schedule: () => ({ cancel: () => undefined }) };
const logs: RootLogger[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodepool-rotation-'));
  time = START;
});
afterEach(async () => {
  for (const log of logs.splice(0)) await log.close();
  await rm(folder, { recursive: true });
});

async function logger(handler: string): Promise<RootLogger> {
  const text = `{version: 1, handlers: {f: {${handler}, filename: '${join(folder, 'l.log')}'}}, root: {handlers: [f], level: INFO}}`;
  const { config, notices } = await parseLoggingConfig(text, 'f');
  expect(notices).toEqual([]);
  const log = createLogger({ config, clock });
  logs.push(log);
  return log;
}

/** Logs a line, and waits until it is in a file. */
async function write(log: RootLogger, word: string): Promise<void> {
  log.info(word);
  while (
    !Object.values(await words())
      .flat()
      .includes(word)
  )
    await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the messages by file. */
async function words(): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const name of (await readdir(folder)).sort()) {
    const lines = (await readFile(join(folder, name), 'utf8')).split('\n').filter((line) => line !== '');
    found[name] = lines.map((line) => line.replace(/^.*: /, ''));
  }
  return found;
}

const TIMED = 'class: logging.handlers.TimedRotatingFileHandler, utc: true';

describe('a file with a TimedRotatingFileHandler', () => {
  it.each<readonly [string, number, string]>([
    ['when: S', 1000, '2026-11-20_13-04-49'],
    ['when: M, interval: 5', 5 * 60_000, '2026-11-20_13-04'],
    ['interval: 1', HOUR, '2026-11-20_13'],
    ['when: D', DAY, '2026-11-20'],
    ['when: midnight', Date.UTC(2026, 10, 21) - START, '2026-11-20'],
    ['when: W4', Date.UTC(2026, 10, 21) - START, '2026-11-14'],
    ['when: W6', Date.UTC(2026, 10, 23) - START, '2026-11-16'],
  ])('is moved with "%s" after %d ms, and named after the start of its time', async (settings, afterMs, suffix) => {
    const log = await logger(`${TIMED}, ${settings}`);
    time += afterMs - 1;
    await write(log, 'before');
    time += 1;
    await write(log, 'after');
    expect(await words()).toEqual({ 'l.log': ['after'], [`l.log.${suffix}`]: ['before'] });
  });

  it('has as many predecessors as configured, and no other file is deleted', async () => {
    await writeFile(join(folder, 'l.log.2026-notes'), '');
    await writeFile(join(folder, 'other.log.2026-11-01'), '');
    const log = await logger(`${TIMED}, when: D, backupCount: 2`);
    for (const word of ['a', 'b', 'c', 'd', 'e']) {
      await write(log, word);
      time += DAY;
    }
    expect(await words()).toEqual({
      'l.log': ['e'],
      'l.log.2026-11-22': ['c'],
      'l.log.2026-11-23': ['d'],
      'l.log.2026-notes': [],
      'other.log.2026-11-01': [],
    });
  });
});

it('a file with a WatchedFileHandler is created again after another program has moved or deleted it', async () => {
  const log = await logger('class: logging.handlers.WatchedFileHandler');
  await write(log, 'first');
  await rename(join(folder, 'l.log'), join(folder, 'l.log.1'));
  await write(log, 'second');
  await rm(join(folder, 'l.log'));
  await write(log, 'third');
  expect(await words()).toEqual({ 'l.log': ['third'], 'l.log.1': ['first'] });
});

it('reports a time of rotation that it does not know, and a format that differs from its own', async () => {
  const { notices } = await parseLoggingConfig(
    `version: 1
formatters: {own: {format: '%(message)s'}, same: {format: '%(asctime)s %(levelname)s %(name)s: %(message)s'}}
handlers: {f: {class: logging.handlers.TimedRotatingFileHandler, filename: x, when: noon}}`,
    'f',
  );
  expect(notices).toEqual([
    expect.stringContaining('formatters own: have no effect'),
    expect.stringContaining('handler f: the file is not rotated, "when: noon"'),
  ]);
});
