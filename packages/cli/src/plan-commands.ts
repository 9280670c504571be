/** The commands that look ahead: `plan` and `journal`. */

import { createRequire } from 'node:module';
import { InvalidArgumentError, type Command } from 'commander';
import type * as Journal from './commands/journal.js';
import type * as Plan from './commands/plan.js';
import { duration, example, formatOption, launcherOption, wholeNumber, type OnStore } from './options.js';
import type { CommonOptions, ProcessIo } from './process-io.js';

const load = createRequire(__filename);

export function addPlanCommands(program: Command, io: ProcessIo, onStore: OnStore): void {
  addPlan(program, io, onStore);
  const journal = program
    .command('journal')
    .description('print the requests, launches and nodes of the last day, as JSON lines')
    .addOption(launcherOption())
    .action(({ launcher = [] }: { readonly launcher?: readonly string[] }) => {
      const command = load('./commands/journal.js') as typeof Journal;
      return command.journal(io, launcher, onStore);
    });
  example(journal, 'nodepool journal > day.jsonl');
}

function addPlan(program: Command, io: ProcessIo, onStore: OnStore): void {
  const plan = program
    .command('plan')
    .description('replay the last day with --config, and compare with the configuration in force')
    .option('--in-force <file>', 'configuration in force (default: /etc/nodepool/nodepool.yaml)')
    .option(
      '--requests <file>',
      'journal or file of requests, instead of the journals of launchers; can be repeated',
      (file: string, files: readonly string[] | undefined) => [...(files ?? []), file],
    )
    .option('--since <duration>', 'the last part of the journal, e.g. 24h or 90m', duration)
    .option('--fit <target>', 'search the smallest limit for a target, e.g. debian=p95:30s', fitTarget)
    .option('--pool <provider/pool>', 'pool for --fit (default: all with the label)')
    .option('--runs <n>', 'replays of each configuration', wholeNumber(1, 100), 5)
    .option('--jobs <n>', 'replays at once (default: number of cores)', wholeNumber(1, 1000))
    .option('--boot-time <duration>', 'duration of unobserved launches', duration, 60)
    .addOption(launcherOption())
    .addOption(formatOption(['pretty', 'json']))
    .addHelpText('after', '\nThe drivers of the configurations must be installed. Clouds are not contacted.')
    .action((options: Plan.PlanCliOptions) =>
      (load('./commands/plan.js') as typeof Plan).plan(program.opts<CommonOptions>(), io, options, onStore),
    );
  example(
    plan,
    'nodepool plan --config nodepool-new.yaml\n  $ nodepool plan --requests day.jsonl --fit debian=p95:30s --pool alpha/main',
  );
}

/** Parses `LABEL=pN:DURATION`. */
function fitTarget(text: string): Plan.FitOption {
  const [, label, percent, time] = /^(.+)=p(\d{1,2}(?:\.\d+)?):(\S+)$/.exec(text) ?? [];
  const part = Number(percent) / 100;
  if (label === undefined || time === undefined || part <= 0) {
    throw new InvalidArgumentError('Expected LABEL=pN:DURATION, e.g. debian=p95:30s.');
  }
  return { label, part, waitMs: duration(time) * 1000 };
}
