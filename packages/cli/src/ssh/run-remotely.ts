/** Runs one command on one node, with its output, its signals and its exit status. */

import type { Readable, Transform, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Clock, RandomSource } from '@nodepool/core';
import { SSH_FAILED, type ChildExit, type NodeTarget, type SshClient } from '@nodepool/daemon/ssh';
import { ExitCode } from '../command-context.js';
import type { Streams } from '../process-io.js';
import { LinePrefixer, MarkFilter, markedCommand, signalScript } from './remote-command.js';

export interface RemoteRun {
  readonly command: readonly string[];
  /** Script that runs on the node before the command, e.g. to read stdin; if it exits, there is no command. */
  readonly setup?: string;
  readonly variables: ReadonlyMap<string, string>;
  readonly streams: Streams;
  /** Begins each line of the output if several nodes write to the same streams. */
  readonly prefix: string | undefined;
  /** Seconds; undefined: no limit. */
  readonly timeout: number | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Sends its signal to the command, SIGINT by default. */
  readonly interrupted: AbortSignal;
  /** Milliseconds between that signal and SIGKILL. Default: no SIGKILL. */
  readonly graceMs?: number;
}

export interface RemoteEnd {
  readonly status: number;
  /** True if `status` is that of the command itself. */
  readonly isOfCommand: boolean;
  /** A sentence for people; undefined if the command succeeded. */
  readonly problem: string | undefined;
}

/** Exit status of a command that `timeout` has ended, as with the program of that name. */
const TIMED_OUT = 124;
/** Limit of the time (ms) for SIGKILL to reach a node, which may not respond. */
const DELIVERY_MS = 15_000;
/** Time between SIGTERM and SIGKILL after the timeout. */
const GRACE_MS = 10_000;

/** Resolves with the end of the command, or of ssh. */
export async function runRemotely(client: SshClient, target: NodeTarget, run: RemoteRun): Promise<RemoteEnd> {
  const { streams, prefix, clock, random, interrupted, timeout, graceMs } = run;
  const mark = `nodepool-run-${random.uuidHex()}`;
  // Several nodes cannot share one input, and a terminal belongs to this process.
  const stdin = prefix === undefined && streams.stdin.isTTY !== true ? streams.stdin : 'ignore';
  const ssh = client.start(target, markedCommand(mark, run.command, run.variables, run.setup), [stdin, 'pipe', 'pipe']);
  const filter = new MarkFilter(mark);
  const prefixer = (): readonly LinePrefixer[] => (prefix === undefined ? [] : [new LinePrefixer(prefix)]);
  const output = Promise.all([
    passOn(ssh.child.stdout, prefixer(), streams.stdout),
    passOn(ssh.child.stderr, [filter, ...prefixer()], streams.stderr),
  ]);
  const send = async (signal: string): Promise<void> => {
    if (filter.pid === undefined) ssh.child.kill();
    else await client.script(target, signalScript(signal, filter.pid)).catch(reportTo(streams.stderr));
  };
  // The caller closes its connections when ssh has ended, so the signal must arrive first.
  const kill = (): void => {
    const end = (): void => void ssh.child.kill();
    killing = clock.schedule(DELIVERY_MS, end);
    void send('SIGKILL').then(end);
  };
  const interrupt = (): void => {
    void send(signalOf(interrupted.reason));
    if (graceMs === undefined) return;
    killing?.cancel();
    killing = clock.schedule(graceMs, kill);
  };
  const limit = { passed: false };
  const expire = (): void => {
    limit.passed = true;
    void send('SIGTERM');
    killing = clock.schedule(GRACE_MS, kill);
  };
  let killing = timeout === undefined ? undefined : clock.schedule(timeout * 1000, expire);
  interrupted.addEventListener('abort', interrupt, { once: true });
  if (interrupted.aborted) interrupt();
  try {
    const exit = await ssh.exited;
    await output;
    if (interrupted.aborted && filter.pid === undefined) {
      return { status: ExitCode.notRun, isOfCommand: false, problem: 'interrupted before the command began' };
    }
    return limit.passed
      ? { status: TIMED_OUT, isOfCommand: false, problem: `the command was ended after ${timeout ?? 0} s (--timeout)` }
      : endOf(filter, exit);
  } finally {
    killing?.cancel();
    interrupted.removeEventListener('abort', interrupt);
  }
}

/** Resolves when all data of the source has passed the transforms; leaves the destination open. */
async function passOn(source: Readable | null, transforms: readonly Transform[], destination: Writable): Promise<void> {
  if (source === null) return;
  const last = transforms.reduce<Readable>((stream, transform) => stream.pipe(transform), source);
  // All nodes share the destination.
  destination.setMaxListeners(0);
  last.pipe(destination, { end: false });
  // The process ends only when its output was read, even if the destination is closed.
  const discard = (): void => void last.resume();
  destination.once('error', discard);
  await finished(last, { writable: false }).finally(() => destination.off('error', discard));
}

function reportTo(stderr: Writable): (error: unknown) => void {
  return (error) => void stderr.write(`nodepool: ${String(error)}\n`);
}

/** Distinguishes the end of the command from that of ssh, which may have the same status. */
function endOf({ pid, status }: MarkFilter, { code, signal }: ChildExit): RemoteEnd {
  if (status !== undefined) {
    return { status, isOfCommand: true, problem: status === 0 ? undefined : `the command ended with status ${status}` };
  }
  const how = signal === null ? `status ${code ?? 'unknown'}` : signal;
  const when =
    pid === undefined
      ? 'before the command began; ssh names the reason above'
      : 'while the command ran; its end is unknown';
  return { status: SSH_FAILED, isOfCommand: false, problem: `ssh ended with ${how} ${when}` };
}

/** Returns the name of the signal that interrupted this process. */
function signalOf(reason: unknown): string {
  const named = reason instanceof Error && 'signal' in reason ? reason.signal : undefined;
  return typeof named === 'string' ? named : 'SIGINT';
}
