/**
 * Fuzzes the client: `pnpm --filter @nodepool/zookeeper fuzz --seconds 60 --seed 1`. Prints the seed of a failed round;
 * `--seed N --rounds 1` repeats it. `--record host:port` records the corpus instead.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seeded } from '../../behaviour/seeded.js';
import { corpusText, loadCorpus } from './corpus.js';
import { Finding, fuzzRound } from './round.js';
import { recordCorpus } from './record.js';

const CORPUS_FILE = join(process.cwd(), 'fuzz', 'corpus.json');
const REPORT_EVERY_MS = 10_000;
/** Bytes. More memory than this after all rounds means a leak. */
const MAX_MEMORY_BYTES = 512 * 1024 * 1024;
/** Milliseconds; an ordinary round takes less than one. */
const MAX_ROUND_MS = 2000;

async function fuzz(firstSeed: number, seconds: number, rounds: number): Promise<void> {
  const corpus = loadCorpus(CORPUS_FILE);
  const startedAt = performance.now();
  let reportAt = startedAt + REPORT_EVERY_MS;
  let seed = firstSeed;
  process.on('uncaughtException', (error) => report(seed, error));
  process.on('unhandledRejection', (error) => report(seed, error));
  console.log(`fuzzing from seed ${firstSeed}`);
  for (; seed < firstSeed + rounds; seed++) {
    const now = performance.now();
    if (now - startedAt >= seconds * 1000) break;
    try {
      await fuzzRound(corpus, seeded(seed));
    } catch (error) {
      report(seed, error);
    }
    const tookMs = performance.now() - now;
    if (tookMs > MAX_ROUND_MS) report(seed, new Error(`the round took ${Math.round(tookMs)} ms`));
    if (now < reportAt) continue;
    reportAt = now + REPORT_EVERY_MS;
    const { rss } = process.memoryUsage();
    console.log(`${seed - firstSeed} rounds, ${Math.round(rss / 2 ** 20)} MiB`);
    if (rss > MAX_MEMORY_BYTES) report(seed, new Error(`${rss} bytes of memory are in use`));
  }
  console.log(`nothing was found in ${seed - firstSeed} rounds`);
}

function report(seed: number, error: unknown): never {
  console.error(`found with --seed ${seed} --rounds 1:`, error);
  if (error instanceof Finding) console.error(`sent to the client: ${error.sent}`);
  process.exit(1);
}

/** Returns the integer of an option, or the default. */
function numberOf(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isNaN(value) || value < 0) throw new Error(`--${name} must be a number, not ${String(text)}`);
  return value;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string' },
      seed: { type: 'string' },
      rounds: { type: 'string' },
      record: { type: 'string' },
    },
  });
  if (values.record !== undefined) {
    writeFileSync(CORPUS_FILE, corpusText(await recordCorpus(values.record)));
    return;
  }
  const seed = numberOf('seed', values.seed, Math.floor(Math.random() * 2 ** 31));
  await fuzz(seed, numberOf('seconds', values.seconds, 60), numberOf('rounds', values.rounds, Infinity));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
