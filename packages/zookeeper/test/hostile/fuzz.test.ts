/** The client survives any bytes of a server: a short run of `fuzz/main.ts` with a fixed seed. */

import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { seeded } from '../behaviour/seeded.js';
import { loadCorpus } from './fuzz/corpus.js';
import { mutated } from './fuzz/mutations.js';
import { OPERATIONS } from './fuzz/operations.js';
import { fuzzRound } from './fuzz/round.js';

const corpus = loadCorpus(join(__dirname, '../../fuzz/corpus.json'));
const ROUNDS = 2000;

describe('corrupted answers', () => {
  it('end every call with a result or an error of this package, without other effects', async () => {
    const memoryBefore = process.memoryUsage().arrayBuffers;
    for (let seed = 0; seed < ROUNDS; seed++) await fuzzRound(corpus, seeded(seed));
    expect(process.memoryUsage().arrayBuffers - memoryBefore).toBeLessThan(128 * 1024 * 1024);
  });

  it('start from recorded answers of a real server to every type of call', () => {
    for (const name of [...Object.keys(OPERATIONS), 'connect', 'event', 'ping', 'setWatches']) {
      expect([name, corpus[name]?.length ?? 0]).toEqual([name, expect.any(Number)]);
      expect(corpus[name]?.length).toBeGreaterThan(0);
    }
  });

  it('are the same for the same seed', () => {
    const [message] = corpus['get'] ?? [];
    const spoil = (seed: number): string => mutated(message!, seeded(seed)).toString('hex');
    expect([1, 2, 3].map(spoil)).toEqual([1, 2, 3].map(spoil));
    expect(new Set(Array.from({ length: 20 }, (_, seed) => spoil(seed))).size).toBeGreaterThan(10);
  });
});
