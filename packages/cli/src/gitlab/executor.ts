/** The stages of GitLab Runner's custom executor, each a process of its own. Leases in the gateway are their state. */

import { open, stat } from 'node:fs/promises';
import { packageVersion, reasonOf, untilAborted, printable, type Clock, type RandomSource } from '@nodepool/core';
import { quote, SshClient } from '@nodepool/daemon/ssh';
import { LeaseRequestError, type LeaseClient, type LeaseDocument, type LeaseOutcome } from '@nodepool/requestor/http';
import { CommandError } from '../command-context.js';
import { LeaseKeeper } from '../leasing/lease-keeper.js';
import {
  createLease,
  leasesNamed,
  releaseAll,
  targetOf,
  untilReady,
  whileUnavailable,
  withReadyNode,
  type LeasingIo,
  type NamedLease,
} from '../leasing/one-node.js';
import type { LeasedNodeOptions } from '../options.js';
import type { Streams } from '../process-io.js';
import { runRemotely } from '../ssh/run-remotely.js';
import { ExitCodes, readJob, type Environment, type GitLabJob } from './job.js';

/** Time (ms) between SIGTERM and SIGKILL for the processes of a cancelled job. */
const GRACE_MS = 10_000;

export interface ExecutorOptions extends LeasedNodeOptions {
  /** Label of the node, unless the job names one in its variable NODEPOOL_LABEL. */
  readonly label?: string;
  readonly buildsDir?: string;
  readonly cacheDir?: string;
}

export interface ExecutorIo {
  readonly env: Environment;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Aborts with the signal that asks this process to stop. */
  readonly interrupted: AbortSignal;
}

/** Returns the answer of the stage `config`. */
export function config({ buildsDir, cacheDir }: ExecutorOptions): string {
  return JSON.stringify({
    driver: { name: 'nodepool', version: packageVersion(__dirname) },
    builds_dir_is_shared: false,
    ...(buildsDir === undefined ? {} : { builds_dir: buildsDir }),
    ...(cacheDir === undefined ? {} : { cache_dir: cacheDir }),
  });
}

export class GitLabExecutor {
  private readonly job: GitLabJob;
  private readonly codes: ExitCodes;
  private readonly leasing: LeasingIo;

  /** Throws `CommandError` if there is no job. */
  constructor(
    private readonly io: ExecutorIo,
    private readonly client: LeaseClient,
    private readonly options: ExecutorOptions,
  ) {
    this.job = readJob(io.env);
    this.codes = new ExitCodes(io.env);
    this.leasing = { client, clock: io.clock, note: (text) => this.note(text) };
  }

  /** Leases a node and logs in to it once. If that fails, the lease is released. Resolves with the exit code. */
  async prepare(): Promise<number> {
    const label = this.io.env['CUSTOM_ENV_NODEPOOL_LABEL'] ?? this.options.label ?? '';
    if (label === '') {
      throw new CommandError('no label: set the variable NODEPOOL_LABEL of the job, or --label');
    }
    const end = new AbortController();
    const timer = this.io.clock.schedule(this.options.timeout * 1000, () => end.abort());
    const signal = AbortSignal.any([this.io.interrupted, end.signal]);
    try {
      const lease = await createLease(this.leasing, this.wanted(label), signal);
      const ssh = new SshClient(this.io.env, this.options.identity, this.io.streams.stderr);
      await withReadyNode(this.leasing, lease, { ssh, user: this.options.user }, signal, async (target) => {
        if ((await ssh.script(target, 'exit 0')) !== 0) {
          throw new CommandError(`cannot log in to node ${target.id} at ${target.address}`);
        }
        this.note(`node ${target.id}: ${target.user} at ${target.address}, port ${target.port}`);
      });
      return 0;
    } catch (error) {
      // The creation may have succeeded although its answer did not arrive.
      await this.release('unknown', `not prepared: ${reasonOf(error)}`).catch((failure: unknown) =>
        this.note(`the lease is not released and will expire: ${reasonOf(failure)}`),
      );
      if (error instanceof LeaseRequestError && [400, 403].includes(error.status)) {
        this.note(error.message);
        return this.codes.buildFailed(1);
      }
      if (this.io.interrupted.aborted || !end.signal.aborted) throw error;
      throw new CommandError(`no node with label ${label} within ${this.options.timeout} s`, { cause: error });
    } finally {
      timer.cancel();
    }
  }

  /** Runs the script of one sub-stage on the node. Resolves with the exit code. */
  async run(script: string): Promise<number> {
    const { env, streams, clock, random, interrupted } = this.io;
    const lease = await this.current();
    const target = targetOf(lease, this.options.user);
    const ssh = new SshClient(env, this.options.identity, streams.stderr);
    const keeper = new LeaseKeeper(this.client, lease, clock);
    // The node may belong to another program from this moment.
    keeper.lost.addEventListener('abort', () => ssh.close());
    try {
      ssh.trust(target);
      const { size } = await stat(script);
      const file = await open(script);
      const stdin = file.createReadStream();
      const running = runRemotely(ssh, target, {
        ...remoteScript(`/tmp/nodepool-gitlab-${random.uuidHex()}`, size),
        streams: { ...streams, stdin },
        ...{ clock, random, interrupted, prefix: undefined, timeout: undefined, graceMs: GRACE_MS },
        variables: new Map(),
      }).finally(() => stdin.destroy());
      const end = await untilAborted(running, keeper.lost);
      if (end.status === 0 && end.isOfCommand) return 0;
      if (interrupted.aborted) throw new CommandError('the job was stopped');
      // A reclaimed node ends the script before its loss is reported here.
      await keeper.check();
      if (keeper.lost.aborted) throw keeper.lost.reason;
      if (!end.isOfCommand) throw new CommandError(`node ${target.id}: ${end.problem ?? 'the script was not run'}`);
      return this.codes.buildFailed(end.status);
    } finally {
      await keeper.stop();
      ssh.close();
    }
  }

  /** Releases all leases of the job. */
  async cleanup(): Promise<number> {
    const outcome = outcomeOf(this.io.env['CUSTOM_ENV_CI_JOB_STATUS']);
    // After its lifetime, the lease has expired.
    const { lifetime } = this.options;
    await whileUnavailable(this.leasing, lifetime, this.io.interrupted, () => this.release(outcome));
    return 0;
  }

  /** Releases the leases of a job whose runner has ended, because that will not clean up. */
  async abandon(): Promise<void> {
    await this.release('cancelled', 'the runner has ended');
  }

  private wanted(label: string): NamedLease {
    const { priority, lifetime } = this.options;
    const { leaseName: name, facts } = this.job;
    const rank = priority === undefined ? {} : { priority };
    return { labels: [label], name, lifetime, data: { gitlab: facts }, ...rank };
  }

  /** Resolves with the job's lease, which `prepare` has created. */
  private async current(): Promise<LeaseDocument> {
    const { interrupted: signal } = this.io;
    const find = (): Promise<readonly LeaseDocument[]> => leasesNamed(this.leasing, this.job.leaseName);
    const [lease] = await whileUnavailable(this.leasing, this.options.lifetime, signal, find);
    if (lease === undefined) throw new CommandError('the job has no lease; it was not prepared');
    return lease.state === 'waiting' ? await untilReady(this.leasing, lease.id, signal) : lease;
  }

  private async release(outcome: LeaseOutcome, comment?: string): Promise<void> {
    await releaseAll(this.leasing, await leasesNamed(this.leasing, this.job.leaseName), outcome, comment);
  }

  private note(text: string): void {
    this.io.streams.stderr.write(`nodepool: ${printable(text)}\n`);
  }
}

/**
 * Returns the parts of a remote run that executes a script from stdin. The script arrives completely before it starts,
 * and has no name while it runs, since it contains the secrets of the job.
 */
function remoteScript(file: string, size: number): { readonly setup: string; readonly command: readonly string[] } {
  const name = quote(file);
  return {
    setup: [
      `(umask 077; set -C; cat >${name}) && [ "$(wc -c <${name})" -eq ${size} ] || { rm -f ${name}; exit 97; }`,
      `exec 9<${name}; rm -f ${name}`,
    ].join('\n'),
    command: [
      ...['sh', '-c'],
      'if command -v bash >/dev/null; then exec bash /dev/fd/9; else exec sh /dev/fd/9; fi </dev/null',
    ],
  };
}

/** Returns the outcome for the status that GitLab Runner gives a job. */
function outcomeOf(status: string | undefined): LeaseOutcome {
  if (status === 'success') return 'success';
  if (status === 'failed') return 'failure';
  return status === 'canceled' ? 'cancelled' : 'unknown';
}
