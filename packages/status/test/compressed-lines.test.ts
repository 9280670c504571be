/** Tests of the lines that a launcher keeps in compressed form. */

import { gunzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { CompressedLines } from '../src/history/compressed-lines.js';

const HOUR_MS = 3_600_000;

const clock = new VirtualClock();

function linesOf(maxBytes: number): CompressedLines {
  const onError = (error: unknown): void => {
    throw error;
  };
  return new CompressedLines({ clock, maxBytes, maxAgeMs: 25 * HOUR_MS, onError });
}

/** Returns the kept lines. The members together are one gzip file. */
async function read(lines: CompressedLines): Promise<string[]> {
  return gunzipSync(Buffer.concat(await lines.read()))
    .toString()
    .trimEnd()
    .split('\n');
}

/** Adds 100,000 characters that do not compress. */
function fill(lines: CompressedLines, seed: number): void {
  const random = seededRandom(seed);
  const text = (): string => Array.from({ length: 200 }, () => random.uuidHex()).join('');
  for (let index = 0; index < 16; index += 1) lines.add(`${seed} ${text()}`);
}

it('lines are kept in their order', async () => {
  const lines = linesOf(1_000_000);
  const added = Array.from({ length: 30_000 }, (_, index) => `line ${index}`);
  for (const line of added) lines.add(line);
  expect(await read(lines)).toEqual(added);
  lines.add('the last one');
  expect(await read(lines)).toEqual([...added, 'the last one']);
});

it('the oldest lines are dropped, and the beginning of the rest is known', async () => {
  const lines = linesOf(300_000);
  const start = clock.now();
  expect(lines.since).toBe(start);
  for (let seed = 1; seed <= 20; seed += 1) {
    fill(lines, seed);
    await clock.advance(1000);
  }
  const kept = await read(lines);
  expect(kept.length).toBeLessThan(160);
  expect(kept.at(-1)).toMatch(/^20 /);
  // Every line after this time is there.
  const first = kept.findIndex((line) => !line.startsWith(kept[0]?.split(' ')[0] ?? ''));
  expect(lines.since).toBeLessThanOrEqual(start + (Number(kept[first]?.split(' ')[0]) - 1) * 1000);
  expect(lines.since).toBeGreaterThan(start + 10_000);

  await clock.advance(26 * HOUR_MS);
  fill(lines, 21);
  expect((await read(lines)).filter((line) => !/^2[01] /.test(line))).toEqual([]);
});
