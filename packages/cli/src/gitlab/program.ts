/** The command line of `nodepool-gitlab`. */

import { packageVersion } from '@nodepool/core/package-version';
import { reasonOf } from '@nodepool/core';
import { Command, CommanderError } from 'commander';
import { StoppedError } from '../caller.js';
import { gatewayClient, gatewayRefusal, type GatewayOptions } from '../gateway-access.js';
import { addGatewayOptions, addLeasedNodeOptions, example } from '../options.js';
import { programOutput } from '../process-io.js';
import { config as configAnswer, GitLabExecutor, type ExecutorIo, type ExecutorOptions } from './executor.js';
import { ExitCodes, timeLimitOf } from './job.js';

/** Time (s) after a job's time limit at which a running stage has lost its runner, which would have ended it. */
const OVERDUE_S = 120;

export interface GitLabIo extends ExecutorIo {
  /** Aborts if the process that started this one has ended. */
  readonly abandoned: AbortSignal;
}

/** Runs one stage. Resolves with the exit code; every failure that is not the job's is a system failure. */
export async function run(args: readonly string[], io: GitLabIo): Promise<number> {
  const { systemFailure } = new ExitCodes(io.env);
  const result = { code: 0 };
  const program = createProgram(io, (code) => void (result.code = code));
  try {
    await program.parseAsync([...args], { from: 'user' });
    return result.code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : systemFailure;
    io.streams.stderr.write(`nodepool-gitlab: ${reasonOf(gatewayRefusal(error))}\n`);
    return systemFailure;
  }
}

function createProgram(io: GitLabIo, done: (code: number) => void): Command {
  const program = new Command('nodepool-gitlab')
    .description('Runs the jobs of a GitLab Runner with the custom executor on leased nodes.')
    .version(packageVersion(__dirname));
  addGatewayOptions(program).option('--label <label>', 'label, unless the job has the variable NODEPOOL_LABEL');
  addLeasedNodeOptions(program, {
    lifetime: ['time until a node is returned after the death of the runner', 600],
    timeout: ['limit of the wait for a node', 3300],
  })
    .option('--builds-dir <path>', 'folder of the sources (default: that of config.toml)')
    .option('--cache-dir <path>', 'folder of the cache (default: that of config.toml)')
    .addHelpText('after', HELP)
    .exitOverride()
    .configureOutput(programOutput(io.streams));
  const stage = async (work: (executor: GitLabExecutor) => Promise<number>): Promise<void> => {
    const options = program.opts<ExecutorOptions & GatewayOptions>();
    const overdue = new AbortController();
    const interrupted = AbortSignal.any([io.interrupted, overdue.signal]);
    const executor = new GitLabExecutor({ ...io, interrupted }, gatewayClient(io, options), options);
    const limit = timeLimitOf(io.env);
    const expire = (): void =>
      overdue.abort(new StoppedError('the time limit of the job has passed; the runner is lost'));
    const timer = limit === undefined ? undefined : io.clock.schedule((limit + OVERDUE_S) * 1000, expire);
    try {
      done(await work(executor));
    } finally {
      timer?.cancel();
      if (io.abandoned.aborted || overdue.signal.aborted) await executor.abandon();
    }
  };
  const config = program
    .command('config')
    .description('print the settings of the executor')
    .action(() => void io.streams.stdout.write(`${configAnswer(program.opts<ExecutorOptions>())}\n`));
  example(config, 'nodepool-gitlab --builds-dir /home/zuul/builds config');
  const prepare = program
    .command('prepare')
    .description('lease a node for the job')
    .action(() => stage((executor) => executor.prepare()));
  example(prepare, 'nodepool-gitlab --label debian-12 prepare');
  const runScript = program
    .command('run')
    .description('run a script of the job on its node')
    .argument('<script>', 'file with the script')
    .argument('<stage>', 'name of the sub-stage')
    .action((script: string) => stage((executor) => executor.run(script)));
  example(runScript, 'nodepool-gitlab run script.sh build_script');
  const cleanup = program
    .command('cleanup')
    .description('return the node of the job')
    .action(() => stage((executor) => executor.cleanup()));
  example(cleanup, 'nodepool-gitlab cleanup');
  return program;
}

const HELP = `
GitLab Runner calls the program for each stage, with its own variables and arguments.

Example:
  $ nodepool-gitlab --label debian-12 prepare
`;
