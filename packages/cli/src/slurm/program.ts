/** The command line of `nodepool-slurm`. */

import { packageVersion } from '@nodepool/core/package-version';
import { reasonOf, printable, type Clock, type RandomSource } from '@nodepool/core';
import { Command, CommanderError } from 'commander';
import { ExitCode, UsageError } from '../command-context.js';
import { gatewayClient, gatewayRefusal, type GatewayOptions } from '../gateway-access.js';
import { addGatewayOptions, addLeasedNodeOptions, example, type LeasedNodeOptions } from '../options.js';
import { programOutput, type Streams } from '../process-io.js';
import { labelsOf } from './labels.js';
import { NodeLeases } from './node-leases.js';
import { Power, type PowerContext } from './power.js';
import { Reconciler } from './reconcile.js';
import { Slurm } from './slurm.js';

export interface SlurmIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Aborts with the signal that asks this process to stop. */
  readonly interrupted: AbortSignal;
}

interface Options extends GatewayOptions, LeasedNodeOptions {
  readonly label: readonly string[];
  readonly start?: string;
  readonly stop?: string;
}

/** Resolves with the exit code. */
export async function run(args: readonly string[], io: SlurmIo): Promise<number> {
  const result = { failures: 0 };
  const program = createProgram(io, (failures) => void (result.failures = failures));
  try {
    await program.parseAsync([...args], { from: 'user' });
    return result.failures === 0 ? ExitCode.done : ExitCode.refused;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.usage;
    const failure = gatewayRefusal(error);
    note(io, reasonOf(failure));
    return failure instanceof UsageError ? ExitCode.usage : ExitCode.refused;
  }
}

function createProgram(io: SlurmIo, done: (failures: number) => void): Command {
  const program = new Command('nodepool-slurm')
    .description("Resumes and suspends Slurm's cloud nodes: each is a leased node.")
    .version(packageVersion(__dirname));
  addGatewayOptions(program)
    .option('--label <label>', 'label, or NODES=LABEL with * in NODES; can be repeated', repeated, [])
    .option('--start <script>', 'starts slurmd on the node $SLURM_NODE')
    .option('--stop <script>', 'stops slurmd before the return');
  addLeasedNodeOptions(program, {
    lifetime: ['time until nodes are returned without "reconcile"', 3600],
    timeout: ['limit of the wait, below ResumeTimeout', 900],
  })
    .addHelpText('after', HELP)
    .exitOverride()
    .configureOutput(programOutput(io.streams));
  const onNodes = (
    name: string,
    what: string,
    work: (power: Power, nodes: readonly string[]) => Promise<number>,
  ): void => {
    const command = program
      .command(name)
      .description(what)
      .argument('<nodes>', 'list of nodes, as Slurm writes it')
      .action(async (list: string) => {
        const context = await contextOf(io, program.opts<Options>());
        done(await work(new Power(context), await context.slurm.hostnames(list)));
      });
    example(command, `nodepool-slurm --label debian-12 --start 'sudo slurmd -b -N "$SLURM_NODE"' ${name} 'cloud[1-3]'`);
  };
  onNodes('resume', 'lease nodes and start slurmd on them (ResumeProgram)', (power, nodes) => power.resume(nodes));
  onNodes('suspend', 'return nodes (SuspendProgram)', (power, nodes) => power.suspend(nodes));
  onNodes('recover', 'return nodes that did not start in time (ResumeFailProgram)', (power, nodes) =>
    power.recover(nodes),
  );
  const reconcile = program
    .command('reconcile')
    .description('renew leases, report lost nodes, and repair what is left; run it every minute')
    .action(async () => {
      const context = await contextOf(io, program.opts<Options>());
      done(await new Reconciler(context, new Power(context)).run());
    });
  example(reconcile, `nodepool-slurm --label debian-12 --start 'sudo slurmd -b -N "$SLURM_NODE"' reconcile`);
  return program;
}

async function contextOf(io: SlurmIo, options: Options): Promise<PowerContext> {
  const { label, start, stop, priority, lifetime, timeout, user, identity } = options;
  if (start === undefined) throw new UsageError('set --start to the command that starts slurmd on a node');
  const client = gatewayClient(io, options);
  const slurm = new Slurm(io);
  return {
    ...{ slurm, client, clock: io.clock, interrupted: io.interrupted },
    leases: new NodeLeases(client, await slurm.cluster(), io.interrupted),
    options: {
      ...{ labelOf: labelsOf(label), start, stop, priority, user, identity, timeout },
      lifetime: Math.ceil(lifetime),
    },
    note: (text) => note(io, text),
  };
}

/** Writes a line with the time, because Slurm keeps no log of these programs. */
function note({ streams, clock }: SlurmIo, text: string): void {
  streams.stderr.write(`${new Date(clock.now()).toISOString()} nodepool-slurm: ${printable(text)}\n`);
}

function repeated(text: string, texts: readonly string[]): readonly string[] {
  return [...texts, text];
}

const HELP = `
Slurm calls it with a script for each of its programs. A timer calls "reconcile".
Exit status: 0 done, 1 failed, 2 usage.

Example:
  $ nodepool-slurm --label debian-12 --start 'sudo slurmd -b -N "$SLURM_NODE"' reconcile
`;
