/** `pnpm bench:ready`: idle nodes against waits of ways to keep nodes ready, for a public trace of jobs. */

import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { drawCurves } from './picture.js';
import { policies } from './policies.js';
import { replay } from './replay.js';
import { idleAt, renderResults, type PolicyResults } from './results.js';
import { readTrace } from './trace.js';

const HELP = `Usage: pnpm bench:ready FILE [options]

Replays the jobs of a trace on a virtual clock against one label. Each job needs one node. Prints, for constant numbers
of ready nodes, a schedule, spare nodes and forecasts, the hours of idle nodes and the waits of the jobs. FILE is a list
of pods of an Alibaba cluster (CSV), or a log in the Standard Workload Format.

  --skip-days N     days at the beginning of the trace to skip; default 0
  --boot N          seconds until a node is ready; default 120
  --max-idle N      max-idle-time, seconds; default 600
  --busy CRON       begin of the busy hours, for the schedule; default '0 8 * * mon-fri'
  --busy-until CRON end of the busy hours; default '0 18 * * mon-fri'
  --timezone NAME   time zone of the busy hours; default UTC
  --title TEXT      title of the picture
  --svg FILE        writes a picture
  --help            this text
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'skip-days': { type: 'string', default: '0' },
      boot: { type: 'string', default: '120' },
      'max-idle': { type: 'string', default: '600' },
      busy: { type: 'string', default: '0 8 * * mon-fri' },
      'busy-until': { type: 'string', default: '0 18 * * mon-fri' },
      timezone: { type: 'string', default: 'UTC' },
      title: { type: 'string', default: 'Idle nodes and waits' },
      svg: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const [file] = positionals;
  if (file === undefined) throw new UsageError('expected the file of a trace');
  const jobs = readTrace(file, numberOf('--skip-days', values['skip-days']));
  const options = {
    bootMs: numberOf('--boot', values.boot) * 1000,
    maxIdleMs: numberOf('--max-idle', values['max-idle']) * 1000,
  };
  const busy = { cron: values.busy, until: values['busy-until'], timezone: values.timezone };
  const results: PolicyResults[] = policies(busy).map(({ name, variants }) => {
    process.stderr.write(`${name} …\n`);
    return { name, variants: variants.map((each) => ({ name: each.name, ...replay(jobs, each.ready, options) })) };
  });
  process.stdout.write(renderResults(results));
  const constant = results.find(({ name }) => name === 'constant')?.variants ?? [];
  const forecast = results.find(({ name }) => name === 'forecast')?.variants ?? [];
  // A level without two constant numbers around it cannot be compared.
  const ratios = forecast.map((each) => each.idleNodeHours / idleAt(constant, each.meanWaitS)).filter(Number.isFinite);
  const levels = `${ratios.filter((ratio) => ratio <= 1).length} of ${ratios.length} levels`;
  process.stdout.write(`\nThe forecast lies on or below the curve of constant numbers at ${levels}.\n`);
  if (values.svg !== undefined) await writeFile(values.svg, drawCurves(values.title, results));
}

function numberOf(option: string, text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) throw new UsageError(`${option}: expected a number`);
  return value;
}

runCommandLine(HELP, main);
