/** The command line: commands, options, and help. The dependencies of a command are loaded when it runs. */

import { createRequire } from 'node:module';
import { packageVersion } from '@nodepool/core/package-version';
import type * as Core from '@nodepool/core';
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { ExitCode, CommandError, type Output } from './command-context.js';
import type * as ConfigValidate from './commands/config-validate.js';
import type * as Completion from './commands/completion.js';
import type * as Delete from './commands/delete.js';
import type * as Describe from './commands/describe.js';
import type * as Explain from './commands/explain.js';
import type * as ExplainJob from './commands/explain-job.js';
import type * as Hold from './commands/hold.js';
import type * as Init from './commands/init.js';
import type * as Wait from './commands/wait.js';
import { COLOR_CHOICES, displayOf, type ColorChoice } from './display.js';
import type { DescribedKind } from './describe/description.js';
import { addImageCommands } from './image-commands.js';
import { addLeaseCommand } from './lease-commands.js';
import { addRequestCommands } from './request-commands.js';
import type { FormatOption, OnStore, Outcome } from './options.js';
import { addList, addListOptions, example, formatOption, launcherOption, seconds } from './options.js';
import { addPlanCommands } from './plan-commands.js';
import type { ListOptions } from './lists/list-command.js';
import type * as RunDoctor from './run-doctor.js';
import type * as RunDrivers from './run-drivers.js';
import type * as Open from './open.js';
import type { CommonOptions, ProcessIo } from './process-io.js';
import { printFailure } from './print-failure.js';

const load = createRequire(__filename);

/** Characters that control a terminal; line breaks and tabs are part of the text. */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Runs the command line; resolves with the exit code, never rejects. */
export async function run(args: readonly string[], process: ProcessIo): Promise<number> {
  const io = { ...process, out: outputOf(process, () => program.opts<CommonOptions>().color) };
  const outcome: Outcome = { exitCode: ExitCode.done, failureCode: ExitCode.refused };
  const program: Command = makeProgram(io, outcome);
  try {
    await program.parseAsync(args, { from: 'user' });
    return outcome.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.usage;
    printFailure(
      io.out,
      isAborted(error) && io.interrupted.aborted ? io.interrupted.reason : error,
      program.opts<CommonOptions>().debug === true,
    );
    const code = error instanceof CommandError ? error.exitCode : ExitCode.refused;
    return code === ExitCode.refused ? outcome.failureCode : code;
  }
}

/** Returns the output of the process, with its display. Notes can name records, whose text may come from any source. */
function outputOf({ out, terminal, env }: ProcessIo, color: () => ColorChoice): Output {
  return {
    print: (text) => out.print(text),
    note: (text) =>
      out.note(text.replace(CONTROLS, (found) => (load('@nodepool/core') as typeof Core).printable(found))),
    display: () => displayOf(terminal?.size(), env, color()),
    ...(terminal === undefined ? {} : { redraw: (text) => terminal.redraw(text) }),
  };
}

/** Returns true if the error is that of a ZooKeeper call aborted by an interruption. */
function isAborted(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'aborted';
}

function makeProgram(io: ProcessIo, outcome: Outcome): Command {
  const program = new Command('nodepool')
    .description('Inspect and manage a running Nodepool.')
    .version(packageVersion(__dirname), '--version', 'print the version')
    .option('-c, --config <file>', 'configuration', '/etc/nodepool/nodepool.yaml')
    .option('-s, --secure <file>', 'secure file, merged over it')
    .option('-l, --logging-config <file>', 'logging configuration')
    .option('--connect-timeout <seconds>', 'wait for ZooKeeper', seconds, 10)
    .option('-d, --debug', 'log everything, with stacks of errors')
    .addOption(new Option('--color <when>', 'color states').choices(COLOR_CHOICES).default('auto'))
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out.print(text.trimEnd()),
      writeErr: (text) => io.out.note(text.trimEnd()),
    });
  const onStore: OnStore = (command, needs) => {
    const { withStore } = load('./open.js') as typeof Open;
    return withStore(program.opts<CommonOptions>(), io, command, needs);
  };
  addLists(program, onStore);
  addNodeCommands(program, onStore);
  addImageCommands(program, onStore);
  addRequestCommands(program, onStore, io, outcome);
  addLeaseCommand(program, io, outcome);
  addWait(program, onStore);
  addExplain(program, io, onStore);
  addInit(program, io);
  addConfigCommands(program, io);
  addPlanCommands(program, io, onStore);
  addDoctor(program, io);
  addCompletion(program, io);
  addHelp(program);
  example(program, 'nodepool -c nodepool.yaml list --detail');
  return program;
}

function addLists(program: Command, onStore: OnStore): void {
  const list = addList(program, onStore, 'list', ['state', 'label', 'provider']).description('list the nodes');
  example(list, 'nodepool list --state ready,in-use --sort -age -o wide');
  const requests = addList(program, onStore, 'request-list', ['state', 'label', 'provider']);
  requests.description('list the node requests in the order of service');
  example(requests, 'nodepool request-list --label debian-12 -o wide');
  const labels = addList(program, onStore, 'label-list', ['label', 'provider']);
  labels.description('list the labels of running launchers');
  example(labels, 'nodepool label-list');
}

function addNodeCommands(program: Command, onStore: OnStore): void {
  const remove = program
    .command('delete')
    .description('mark a node for deletion; refused while it is locked')
    .argument('<id>', 'id of the node')
    .option('--now', 'wait until the node is deleted', false)
    .option('--break-lease', 'also if a durable lease has the node; its owner loses it', false)
    .action((id: string, options: Delete.DeleteOptions) =>
      onStore((context) => (load('./commands/delete.js') as typeof Delete).deleteNode(context, id, options)),
    );
  example(remove, 'nodepool delete 0000000042 --now');
  const hold = program
    .command('hold')
    .description('hold a node for inspection; refused while it is locked, unless it has slots')
    .argument('<id>', 'id of the node')
    .option('--comment <text>', 'reason, for operators')
    .action((id: string, options: { comment?: string }) =>
      onStore((context) => (load('./commands/hold.js') as typeof Hold).hold(context, id, { comment: options.comment })),
    );
  example(hold, 'nodepool hold 0000000042 --comment "disk is full, ask Ada"');
}

interface WaitCliOptions {
  readonly state?: string;
  readonly timeout?: number;
}

function addWait(program: Command, onStore: OnStore): void {
  const wait = program
    .command('wait')
    .description('wait for a fulfilled request, a state of a node, or a ready node of a label')
    .addArgument(new Argument('<kind>', 'kind').choices(['request', 'node', 'label', 'job']))
    .argument('<id>', 'id, name of a label, or address of the page of a job')
    .option('--state <state>', 'state of the node, or gone (default: ready)')
    .option('--timeout <seconds>', 'fail after this time', seconds)
    .action((kind: 'request' | 'node' | 'label', id: string, { state, timeout }: WaitCliOptions) =>
      onStore((context) => (load('./commands/wait.js') as typeof Wait).wait(context, kind, id, { state, timeout })),
    );
  example(wait, 'nodepool wait label debian-12 --timeout 600');
}

interface ExplainCliOptions extends FormatOption {
  readonly launcher?: readonly string[];
}

function addExplain(program: Command, io: ProcessIo, onStore: OnStore): void {
  const explain = program
    .command('explain')
    .description('explain the state of a request, node, label or job of GitHub Actions, and its wait')
    .addArgument(new Argument('<kind>', 'kind').choices(['request', 'node', 'label', 'job']))
    .argument('<id>', 'id, name of a label, or address of the page of a job')
    .addOption(launcherOption())
    .addOption(formatOption())
    .action((kind: Explain.ExplainedKind | 'job', id: string, { launcher = [], format }: ExplainCliOptions) => {
      if (kind === 'job') {
        const { explainJob } = load('./commands/explain-job.js') as typeof ExplainJob;
        return onStore((context) => explainJob(context, id, { format }));
      }
      const command = load('./commands/explain.js') as typeof Explain;
      if (launcher.length > 0) return command.explainByLaunchers(io, kind, id, { launchers: launcher, format });
      return onStore((context) => command.explain(context, kind, id, { format }));
    });
  example(
    explain,
    'nodepool explain request 200-0000000042\n  $ nodepool explain job https://github.com/acme/app/actions/runs/1001',
  );
  const describe = program
    .command('describe')
    .description('show everything about a node, request, label or provider, with its timeline')
    .addArgument(new Argument('<kind>', 'kind').choices(['node', 'request', 'label', 'provider']))
    .argument('<name>', 'id, or name of a label or provider')
    .addOption(launcherOption())
    .addOption(formatOption())
    .action((kind: DescribedKind, name: string, { launcher = [], format }: ExplainCliOptions) =>
      onStore((context) =>
        (load('./commands/describe.js') as typeof Describe).describe(context, kind, name, { launcher, format }),
      ),
    );
  example(describe, 'nodepool describe node 0000000042');
}

function addInit(program: Command, io: ProcessIo): void {
  const init = program
    .command('init')
    .description('write a first configuration with images, machine types and networks of the cloud')
    .option('--driver <name>', 'driver of the cloud')
    .option('--set <key=value>', "key of the provider's section, e.g. cloud=acme; can be repeated", keyValue)
    .option('--name <name>', 'provider (default: as the driver)')
    .option('--label <name>', 'label (default: "default")')
    .option('--image <name>', 'image of the nodes')
    .option('--machine-type <name>', 'machine type')
    .option('--network <name>', 'network or subnet')
    .option('--zone <name>', 'availability zone')
    .option('--username <name>', 'login name (default: by the image)')
    .option('--max-servers <count>', 'limit of nodes (default: 2)', count)
    .option('--zookeeper <address>', 'HOST[:PORT] of a server (default: 127.0.0.1:2181)')
    .option('--force', 'replace an existing file', false)
    .action((options: Init.InitOptions) =>
      (load('./commands/init.js') as typeof Init).init(program.opts<CommonOptions>(), io, options),
    );
  example(init, 'nodepool -c nodepool.yaml init --driver openstack --set cloud=acme');
}

/** Adds KEY=VALUE to the values so far. */
function keyValue(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at <= 0) throw new InvalidArgumentError('expected KEY=VALUE');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

function count(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('expected a number, 1 or greater');
  return Number(text);
}

interface ValidateOptions extends ConfigValidate.ReportOptions {
  readonly compatible?: boolean;
}

function addConfigCommands(program: Command, io: ProcessIo): void {
  const validate = program
    .command('config-validate')
    .description('check the configuration')
    .option('--compatible', 'also name keys and drivers that the Python Nodepool (release 11) does not know')
    .option('--file-only', 'without credentials, secure file and environment variables', false)
    .addOption(
      new Option('-o, --format <form>', 'form; "github": annotations of GitHub Actions')
        .choices(['pretty', 'json', 'github'])
        .default('pretty'),
    )
    .action(async ({ compatible = false, fileOnly, format }: ValidateOptions) => {
      const { readConfig } = load('./open.js') as typeof Open;
      const { configValidate } = load('./commands/config-validate.js') as typeof ConfigValidate;
      const result = await readConfig(program.opts<CommonOptions>(), io, {
        listIncompatible: compatible,
        ...(fileOnly ? { zookeeper: 'optional', withoutEnvironment: true } : {}),
      });
      configValidate(io, result, { format, fileOnly });
    });
  example(validate, 'nodepool -c nodepool.yaml -s secure.yaml config-validate');
  const drivers = addListOptions(program.command('drivers'), { filters: ['provider'], detail: false, watch: false })
    .description('list the installed drivers with their providers and problems')
    .action((options: ListOptions) =>
      (load('./run-drivers.js') as typeof RunDrivers).runDrivers(program.opts<CommonOptions>(), io, options),
    );
  example(drivers, 'nodepool drivers');
}

function addDoctor(program: Command, io: ProcessIo): void {
  const command = program
    .command('doctor')
    .description('examine ZooKeeper, certificates, clocks, programs, providers, records and disks; changes nothing')
    .addOption(formatOption())
    .action((options: FormatOption) =>
      (load('./run-doctor.js') as typeof RunDoctor).runDoctor(program.opts<CommonOptions>(), io, options),
    );
  example(command, 'nodepool doctor');
}

/** Adds the command `help`; that of commander gives no reason for an unknown command. */
function addHelp(program: Command): void {
  program
    .command('help')
    .description('display help for command')
    .argument('[command]', 'name of the command')
    .action(async (name: string | undefined) => {
      const command = name === undefined ? program : program.commands.find((each) => each.name() === name);
      if (command !== undefined) command.help();
      await program.parseAsync([name ?? ''], { from: 'user' });
    });
}

function addCompletion(program: Command, io: ProcessIo): void {
  const completion = program
    .command('completion')
    .description('print the completion script for bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'your shell').choices(['bash', 'zsh', 'fish']))
    .action((shell: Completion.Shell) =>
      (load('./commands/completion.js') as typeof Completion).completion(io, program, shell),
    );
  example(completion, 'nodepool completion bash > /etc/bash_completion.d/nodepool');
  program.command('provider-names', { hidden: true }).action(() => {
    const { withConfig } = load('./open.js') as typeof Open;
    return withConfig(program.opts<CommonOptions>(), io, (config) =>
      (load('./commands/completion.js') as typeof Completion).providerNames(io, config),
    );
  });
}
