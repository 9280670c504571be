/** `pnpm bench:cost`: the function calls and allocated bytes of a node life, which hardly depend on the machine. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { HeapProfiler, Profiler } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { BenchmarkEnvironment } from '../environment.js';
import { burst } from '../scenarios.js';
import { allocatingFunctions, calledFunctions } from './entries.js';
import type { Cost } from './probe.js';
import { renderReport } from './report.js';

const HELP = `Usage: pnpm bench:cost [options]

Counts the function calls and the allocated bytes of a launcher in a first burst of 1,000 requests, and prints them per
node life, by package, file and function. Both hardly depend on the machine and on what else it does, so they show
small changes of the code that the processor time of 'pnpm bench' does not. The lines are those of the compiled files.

  --rows N   rows of the tables of files and functions; default 40
  --help     this text
`;

const LIVES = 1000;
const ROOT = join(__dirname, '..', '..', '..', '..');

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rows: { type: 'string', default: '40' }, help: { type: 'boolean', default: false } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const rows = Number(values.rows);
  if (!Number.isInteger(rows) || rows < 1) throw new UsageError(`--rows: expected a positive number`);
  const common = { root: ROOT, lives: LIVES, rows };
  const calls = calledFunctions((await profileOf('calls')) as Profiler.ScriptCoverage[]);
  process.stdout.write(`${renderReport(calls, { ...common, unit: 'calls', scale: 1 })}\n\n`);
  const bytes = allocatingFunctions((await profileOf('bytes')) as HeapProfiler.SamplingHeapProfile);
  process.stdout.write(`${renderReport(bytes, { ...common, unit: 'kB', scale: 1000 })}\n`);
}

/** Returns the profile of a launcher in a first burst. */
async function profileOf(cost: Cost): Promise<unknown> {
  process.stderr.write(`${LIVES} requests at once, counting ${cost} …\n`);
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-cost-'));
  try {
    const file = join(folder, 'profile.json');
    const environment = await BenchmarkEnvironment.make({
      dataFolder: folder,
      probe: { script: join(__dirname, 'probe.js'), env: { NODEPOOL_COST_FILE: file, NODEPOOL_COST_OF: cost } },
    });
    try {
      await environment.measure('burst', (signal) => burst(environment, LIVES, signal));
      environment.beginPhase();
    } finally {
      await environment.clear();
    }
    return JSON.parse(readFileSync(file, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

runCommandLine(HELP, main);
