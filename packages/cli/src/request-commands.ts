/** The commands that request nodes: `request` and `run`. */

import { createRequire } from 'node:module';
import { InvalidArgumentError, type Command } from 'commander';
import { ExitCode } from './command-context.js';
import type * as Request from './commands/request.js';
import type * as Run from './commands/run.js';
import type { FormatOption, OnStore, Outcome } from './options.js';
import { duration, example, formatOption, pointInTime, seconds, wholeNumber } from './options.js';
import type { ProcessIo, Streams } from './process-io.js';
import type { CopySpec } from './ssh/copy.js';

const load = createRequire(__filename);

/** Options of both commands that describe the request. */
interface WantedNodes {
  readonly priority: number;
  readonly tenant?: string;
  readonly provider?: string;
  readonly startBy?: number;
}

export function addRequestCommands(program: Command, onStore: OnStore, io: ProcessIo, outcome: Outcome): void {
  addRequest(program, onStore, io);
  addRun(program, onStore, io, outcome);
}

function wantedNodesOptions(command: Command): Command {
  return command
    .option('--priority <n>', '0 to 999, lower is served first', wholeNumber(0, 999), 200)
    .option('--tenant <name>', 'tenant whose limits apply')
    .option('--provider <name>', 'this provider, unless it cannot serve the request')
    .option('--start-by <time>', 'time by which nodes are needed, ISO 8601 or unix seconds', pointInTime);
}

interface RequestCliOptions extends WantedNodes, FormatOption {
  readonly count: number;
  readonly timeout?: number;
  readonly hold?: number;
  readonly untilEof: boolean;
  readonly wait: boolean;
}

function addRequest(program: Command, onStore: OnStore, io: ProcessIo): void {
  const request = wantedNodesOptions(
    program
      .command('request')
      .description('request nodes, hold them until interrupted, and return them')
      .argument('<label...>', 'labels of the nodes', labels)
      .option('--count <n>', 'nodes of each label', wholeNumber(1, 1000), 1),
  )
    .option('--timeout <seconds>', 'limit of the wait', seconds)
    .option('--hold <seconds>', 'return the nodes after this time', seconds)
    .option('--until-eof', 'return the nodes when standard input ends, e.g. with the parent process', false)
    .option('--no-wait', 'exit without waiting for the deletion of the nodes')
    .addOption(formatOption(['pretty', 'json']))
    .addHelpText('after', '\n--format json prints one JSON object per event: see docs/requestors.md.')
    .addHelpText(
      'after',
      '\nExit status: 0 returned, 1 failed, 2 usage, 3 --timeout has passed, 4 the nodes were lost.',
    )
    .action((labels: string[], { tenant, provider, timeout, hold, startBy, ...options }: RequestCliOptions) =>
      onStore(
        (context) =>
          (load('./commands/request.js') as typeof Request).request(context, streamsOf(io), labels, {
            ...options,
            tenant,
            provider,
            timeout,
            hold,
            startBy,
          }),
        { records: false },
      ),
    );
  example(request, 'nodepool request debian-12 debian-12-large --timeout 600 --hold 60');
}

interface RunCliOptions extends WantedNodes {
  readonly label: string;
  readonly count: number;
  readonly user?: string;
  readonly identity?: string;
  readonly env: readonly string[];
  readonly copy: readonly CopySpec[];
  readonly timeout?: number;
  readonly waitTimeout?: number;
  readonly holdOnFailure?: number;
}

function addRun(program: Command, onStore: OnStore, io: ProcessIo, outcome: Outcome): void {
  const run = wantedNodesOptions(
    program
      .command('run')
      .description('run a command on new nodes over ssh, and return the nodes')
      .argument('<command...>', 'command with arguments, after --')
      .requiredOption('--label <label>', 'label of the nodes', label)
      .option('--count <n>', 'nodes; the command runs on each', wholeNumber(1, 1000), 1)
      .option('--user <name>', 'login name (default: that of the node)')
      .option('--identity <file>', 'private key (default: those of ssh)')
      .option('--env <name[=value]>', 'environment variable (default value: as here); can be repeated', all, [])
      .option('--copy <local[:remote]>', 'copy a file or folder first; can be repeated', copies, []),
  )
    .option('--timeout <duration>', 'limit of the command, e.g. 90s, 15m, 1h', duration)
    .option('--wait-timeout <duration>', 'limit of the wait', duration)
    .option('--hold-on-failure <duration>', 'time to hold the nodes if the command fails', duration)
    .addHelpText(
      'after',
      '\nExit status: that of the command (of the first that failed); 2 usage, 124 --timeout has passed,\n' +
        '125 no command was run or the nodes were lost, 255 ssh failed. The last line on stderr names the reason.',
    )
    .action((command: string[], options: RunCliOptions) => {
      outcome.failureCode = ExitCode.notRun;
      const { tenant, provider, startBy, user, identity, timeout, waitTimeout, holdOnFailure, ...others } = options;
      return onStore(
        async (context) => {
          outcome.exitCode = await (load('./commands/run.js') as typeof Run).run(
            context,
            io.env,
            streamsOf(io),
            command,
            {
              ...others,
              tenant,
              provider,
              startBy,
              user,
              identity,
              timeout,
              waitTimeout,
              holdOnFailure,
            },
          );
        },
        { records: false },
      );
    });
  example(run, 'nodepool run --label debian-12 --copy .:work -- sh -c "cd work && make test"');
}

function streamsOf({ streams = process }: ProcessIo): Streams {
  return streams;
}

function label(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected the name of a label.');
  return text;
}

function labels(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, label(text)];
}

function all(text: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, text];
}

function copies(text: string, earlier: readonly CopySpec[]): readonly CopySpec[] {
  const [, local = '', remote] = /^([^:]+)(?::(.+))?$/s.exec(text) ?? [];
  if (local === '') throw new InvalidArgumentError('Expected LOCAL or LOCAL:REMOTE.');
  return [...earlier, { local, remote }];
}
