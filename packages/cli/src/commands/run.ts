/** `nodepool run --label LABEL -- COMMAND`: runs a command on new nodes over ssh, and returns the nodes. */

import { accessSync, constants } from 'node:fs';
import { untilAborted, printable } from '@nodepool/core';
import { LeaseLostError, openRequestor, type JobResult, type Lease } from '@nodepool/requestor';
import { ExitCode, CommandError, type StoreContext } from '../command-context.js';
import { noteInterruption, ProgressNotes, refusalOf } from '../lease-reports.js';
import type { Streams } from '../process-io.js';
import { copyTo, readCopy, type Copy, type CopySpec } from '../ssh/copy.js';
import { quote, SSH_FAILED, SshClient, sshTarget, type NodeTarget } from '@nodepool/daemon/ssh';
import { runRemotely, type RemoteEnd } from '../ssh/run-remotely.js';
import { explainFailure } from '../explain-failure.js';
import { requestSpec, type WantedNodes } from './request.js';

/** Time limit (ms) for the answer of ZooKeeper whether the nodes are held, longer than its usual session timeout. */
const CONFIRM_MS = 60_000;

export interface RunOptions extends WantedNodes {
  readonly label: string;
  /** Number of nodes; the command runs on each. */
  readonly count: number;
  readonly user: string | undefined;
  readonly identity: string | undefined;
  /** `NAME=VALUE`, or `NAME` for the value in this process. */
  readonly env: readonly string[];
  readonly copy: readonly CopySpec[];
  /** Limit of the command, seconds. */
  readonly timeout: number | undefined;
  /** Limit of the wait for nodes, seconds. */
  readonly waitTimeout: number | undefined;
  /** Seconds for which the nodes are held if the command fails; undefined: they are returned. */
  readonly holdOnFailure: number | undefined;
}

/** Everything that the options name, read and checked before nodes are requested. */
interface Job {
  readonly command: readonly string[];
  readonly variables: ReadonlyMap<string, string>;
  readonly copies: readonly Copy[];
  readonly options: RunOptions;
  readonly client: SshClient;
  readonly streams: Streams;
  readonly path: string | undefined;
}

/**
 * Resolves with the exit status of the command, or of the first command that failed, once the nodes are returned or
 * held. Rejects with `CommandError` if no command was run or the nodes were lost.
 */
export async function run(
  context: StoreContext,
  env: Readonly<Record<string, string | undefined>>,
  streams: Streams,
  command: readonly string[],
  options: RunOptions,
): Promise<number> {
  const notes = new ProgressNotes(context.out);
  try {
    const variables = readVariables(options.env, env);
    const copies = options.copy.map(readCopy);
    checkIdentity(options.identity);
    const client = new SshClient(env, options.identity, streams.stderr);
    try {
      return await runOnNodes(context, notes, {
        ...{ command, variables, copies, options, client, streams },
        path: env['PATH'],
      });
    } finally {
      client.close();
    }
  } catch (error) {
    throw notRun(refusalOf(await explainFailure(context, error), notes.reasons));
  }
}

async function runOnNodes(context: StoreContext, notes: ProgressNotes, job: Job): Promise<number> {
  const { store, clock, random, log, interrupted } = context;
  const { label, count, waitTimeout } = job.options;
  const requestor = openRequestor(store.zooKeeper, { name: 'nodepool-run', clock, random, log });
  try {
    const lease = await requestor.acquire(requestSpec([label], count, job.options), {
      signal: interrupted,
      ...(waitTimeout === undefined ? {} : { timeoutMs: waitTimeout * 1000 }),
      onProgress: (progress) => notes.note(progress),
    });
    let result: JobResult | undefined;
    try {
      lease.onInterruption((interruption) => noteInterruption(context.out, interruption));
      const status = await useNodes(context, job, lease);
      // A command that was interrupted, and a connection that broke, say nothing about the image.
      if (!interrupted.aborted && status !== SSH_FAILED) result = status === 0 ? 'success' : 'failure';
      return status;
    } finally {
      await lease.return(result === undefined ? {} : { result });
    }
  } finally {
    await requestor.close();
  }
}

async function useNodes(context: StoreContext, job: Job, lease: Lease): Promise<number> {
  const { out, interrupted } = context;
  const { options, client, command } = job;
  const noteSignal = (): void => out.note('the signal is passed to the command; another signal ends nodepool at once');
  interrupted.addEventListener('abort', noteSignal, { once: true });
  const targets = lease.nodes.map((node) => sshTarget(node, options.user));
  for (const target of targets) client.trust(target);
  let failure: (RemoteEnd & { readonly target: NodeTarget }) | undefined;
  const all = Promise.all(
    targets.map(async (target) => {
      const end = await useNode(context, job, lease, target);
      if (end.problem !== undefined) out.note(`node ${target.id}: ${end.problem}`);
      if (end.status !== 0) failure ??= { ...end, target };
    }),
  );
  // From this moment a launcher may delete the nodes, so ssh must not use them any longer.
  await untilAborted(all, lease.lost);
  if (failure === undefined) return 0;
  // The connection to a deleted node can end before ZooKeeper reports that the node is lost.
  if (failure.status === SSH_FAILED) await confirmNodes(context, lease);
  if (options.holdOnFailure !== undefined && !interrupted.aborted) {
    const text = command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quote(word))).join(' ');
    const comment = printable(`nodepool run: ${text}: ${failure.problem ?? `status ${failure.status}`}`);
    const result = failure.status === SSH_FAILED ? {} : ({ result: 'failure' } as const);
    await lease.hold({ comment, expirationSeconds: options.holdOnFailure, ...result });
    const until = new Date(context.clock.now() + options.holdOnFailure * 1000).toISOString();
    for (const target of targets) out.note(loginHelp(target, options.identity, until));
  }
  return failure.status;
}

/** Rejects with `LeaseLostError` if the nodes are lost. Prints a note if ZooKeeper does not answer. */
async function confirmNodes({ out, interrupted }: StoreContext, lease: Lease): Promise<void> {
  try {
    await lease.confirm({ signal: interrupted, timeoutMs: CONFIRM_MS });
  } catch (error) {
    if (lease.lost.aborted || error instanceof LeaseLostError) throw error;
    out.note(`the nodes may be lost: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function useNode(
  { out, clock, random, interrupted }: StoreContext,
  { command, variables, copies, client, streams, options, path }: Job,
  lease: Lease,
  target: NodeTarget,
): Promise<RemoteEnd> {
  for (const copy of copies) await untilAborted(copyTo(client, target, copy, path), interrupted);
  await lease.confirm({ signal: interrupted });
  out.note(`node ${target.id}: running as ${target.user} at ${target.address}, port ${target.port}`);
  return await runRemotely(client, target, {
    ...{ command, variables, streams, clock, random, interrupted, timeout: options.timeout },
    prefix: options.count === 1 ? undefined : `${target.id}: `,
  });
}

/** Returns the commands that log in to a held node. */
function loginHelp(
  { id, user, address, port, knownHosts }: NodeTarget,
  identity: string | undefined,
  until: string,
): string {
  const file = `known_hosts-${id}`;
  const key = identity === undefined ? '' : ` -i ${quote(identity)}`;
  return [
    `node ${id} is held until ${until}; \`nodepool delete ${id}\` deletes it earlier. Log in with:`,
    `  printf '%s\\n' ${knownHosts.map(quote).join(' ')} >${file}`,
    `  ssh -o UserKnownHostsFile=${file} -o StrictHostKeyChecking=yes${key} -p ${port} -l ${user} ${address}`,
  ].join('\n');
}

function readVariables(
  texts: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, string> {
  return new Map(
    texts.map((text) => {
      const [, name = '', given] = /^([A-Za-z_][A-Za-z0-9_]*)(?:=(.*))?$/s.exec(text) ?? [];
      if (name === '') throw new CommandError(`--env: ${JSON.stringify(text)} is neither NAME nor NAME=VALUE`);
      const value = given ?? env[name];
      if (value === undefined) throw new CommandError(`--env: the variable ${name} is not set here`);
      return [name, value];
    }),
  );
}

function checkIdentity(file: string | undefined): void {
  if (file === undefined) return;
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new CommandError(`--identity: ${file} cannot be read`, { cause: error });
  }
}

/** Sets the exit code of failures without a remote command. */
function notRun(error: unknown): unknown {
  const message = error instanceof Error ? error.message : String(error);
  const ended = error instanceof CommandError && error.cause instanceof LeaseLostError;
  return new CommandError(ended ? `${message}; the command was stopped` : message, {
    cause: error,
    exitCode: ExitCode.notRun,
  });
}
