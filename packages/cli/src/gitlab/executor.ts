/** The stages of GitLab Runner's custom executor, each a process of its own. Leases in the gateway are their state. */

import { open, stat } from 'node:fs/promises';
import { packageVersion, reasonOf, sleep, untilAborted, type Clock, type RandomSource } from '@nodepool/core';
import { quote, SshClient, type NodeTarget } from '@nodepool/daemon/ssh';
import {
  GatewayUnreachableError,
  LeaseRequestError,
  type LeaseClient,
  type LeaseDocument,
  type LeaseOutcome,
} from '@nodepool/requestor/http';
import { printable } from '@nodepool/store';
import { CommandError } from '../command-context.js';
import { leasedTarget } from '../gateway-access.js';
import type { Streams } from '../process-io.js';
import { runRemotely } from '../ssh/run-remotely.js';
import { ExitCodes, readJob, type Environment, type GitLabJob } from './job.js';
import { LeaseKeeper, lossOf } from './lease-keeper.js';

/** Limit of the leases that one job uses one after the other. GitLab Runner prepares a job three times. */
const MAX_ATTEMPTS = 100;
/** Time (ms) between attempts while the token's nodes are all in use. */
const QUOTA_RETRY_MS = 10_000;
/** Time (ms) after which another gateway knows a new lease too. */
const SETTLE_MS = 2000;
/** Time (ms) between SIGTERM and SIGKILL for the processes of a cancelled job. */
const GRACE_MS = 10_000;

export interface ExecutorOptions {
  /** Label of the node, unless the job names one in its variable NODEPOOL_LABEL. */
  readonly label?: string;
  readonly priority?: number;
  /** Seconds until the lease expires without renewal. */
  readonly lifetime: number;
  /** Limit of the wait for a node, seconds. */
  readonly timeout: number;
  readonly user?: string;
  /** File with the private key. */
  readonly identity?: string;
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

  /** Throws `CommandError` if there is no job. */
  constructor(
    private readonly io: ExecutorIo,
    private readonly client: LeaseClient,
    private readonly options: ExecutorOptions,
  ) {
    this.job = readJob(io.env);
    this.codes = new ExitCodes(io.env);
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
      await this.start(await this.create(label, signal), signal);
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
    const target = this.targetOf(lease);
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
    await this.release(outcomeOf(this.io.env['CUSTOM_ENV_CI_JOB_STATUS']));
    return 0;
  }

  /** Releases the leases of a job whose runner has ended, because that will not clean up. */
  async abandon(): Promise<void> {
    await this.release('cancelled', 'the runner has ended');
  }

  /** Resolves with a lease that waits or is ready. An attempt after a released lease creates another one. */
  private async create(label: string, signal: AbortSignal): Promise<LeaseDocument> {
    const { priority, lifetime } = this.options;
    const { leaseName: name, facts } = this.job;
    const wanted = {
      labels: [label],
      name,
      lifetime,
      data: { gitlab: facts },
      ...(priority === undefined ? {} : { priority }),
    };
    for (let attempt = 1; attempt <= MAX_ATTEMPTS;) {
      try {
        const lease = await this.client.create(wanted, { key: `${name}/${attempt}`, signal });
        if (lease.state === 'waiting' || lease.state === 'ready') return lease;
        attempt++;
      } catch (error) {
        const code = error instanceof LeaseRequestError ? error.code : '';
        if (code === 'key-reused') attempt++;
        else if (code !== 'quota' && !(error instanceof GatewayUnreachableError)) throw error;
        else {
          this.note(`waiting: ${reasonOf(error)}`);
          await sleep(this.io.clock, QUOTA_RETRY_MS, signal);
        }
      }
    }
    throw new CommandError(`the job has used ${MAX_ATTEMPTS} leases`);
  }

  /** Waits for the node of a lease, and logs in to it. */
  private async start(lease: LeaseDocument, signal: AbortSignal): Promise<void> {
    const keeper = new LeaseKeeper(this.client, lease, this.io.clock);
    const ssh = new SshClient(this.io.env, this.options.identity, this.io.streams.stderr);
    try {
      const stop = AbortSignal.any([signal, keeper.lost]);
      const target = this.targetOf(await this.untilReady(lease.id, stop));
      ssh.trust(target);
      stop.addEventListener('abort', () => ssh.close());
      const status = await untilAborted(ssh.script(target, 'exit 0'), stop);
      if (status !== 0) throw new CommandError(`cannot log in to node ${target.id} at ${target.address}`);
      this.note(`node ${target.id}: ${target.user} at ${target.address}, port ${target.port}`);
    } finally {
      await keeper.stop();
      ssh.close();
    }
  }

  private async untilReady(id: string, signal: AbortSignal): Promise<LeaseDocument> {
    let said = '';
    for (;;) {
      try {
        return await this.client.ready(id, {
          signal,
          onChange: ({ phase, reasons }) => {
            const text = `lease ${id}: ${[phase, ...reasons].join('; ')}`;
            if (text !== said) this.note(text);
            said = text;
          },
        });
      } catch (error) {
        if (!(error instanceof GatewayUnreachableError)) throw error;
        this.note(error.message);
      }
    }
  }

  /** Resolves with the job's lease, which `prepare` has created. */
  private async current(): Promise<LeaseDocument> {
    const { interrupted: signal } = this.io;
    const [lease] = await this.leases();
    if (lease === undefined) throw new CommandError('the job has no lease; it was not prepared');
    return lease.state === 'waiting' ? await this.untilReady(lease.id, signal) : lease;
  }

  /** Resolves with the leases of the job, newest first. */
  private async leases(): Promise<readonly LeaseDocument[]> {
    const { leaseName: name } = this.job;
    const found: LeaseDocument[] = [];
    for (let looks = 1; found.length === 0 && looks <= 2; looks++) {
      if (looks > 1) await sleep(this.io.clock, SETTLE_MS);
      for await (const lease of this.client.list({ name })) if (lease.name === name) found.push(lease);
    }
    return found;
  }

  private async release(outcome: LeaseOutcome, comment?: string): Promise<void> {
    for (const { id, state } of await this.leases()) {
      if (state !== 'waiting' && state !== 'ready') continue;
      await this.client.release(id, { outcome, ...(comment === undefined ? {} : { comment: comment.slice(0, 1000) }) });
    }
  }

  private targetOf(lease: LeaseDocument): NodeTarget {
    const loss = lossOf(lease);
    if (loss !== undefined) throw new CommandError(loss);
    const [node] = lease.nodes;
    if (node === undefined) throw new CommandError(`lease ${lease.id} has no node`);
    return leasedTarget(node, this.options.user);
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
