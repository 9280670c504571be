/** The process of a runner on its node: started once, attached to as long as it runs, stopped on demand. */

import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { linkSignals, type Clock } from '@nodepool/core';
import type { LeasedNode } from '@nodepool/requestor';
import { posix, SSH_FAILED, SshClient, SshError, sshTarget, type NodeTarget } from '@nodepool/daemon/ssh';
import { MARK, startScript, stopScript, waitScript, type StartSettings } from './runner-script.js';

/** The state of a runner at the end of an ssh session. */
export type RunnerEnd =
  /** The runner has ended with an exit status; `log` is the end of its output. */
  | { readonly kind: 'ended'; readonly status: number; readonly log: string }
  /** The process has ended without a status: it was killed, or its host has restarted. */
  | { readonly kind: 'lost' }
  /** The node knows nothing of the runner. */
  | { readonly kind: 'absent' }
  /** The connection failed; `started` is false if the runner was certainly not started. */
  | { readonly kind: 'unreachable'; readonly started: boolean; readonly reason: string };

export interface RunnerEvents {
  /** The runner process runs, or has run before. */
  readonly onStarted: () => void;
  /** The runner has connected to GitHub. */
  readonly onOnline: () => void;
}

/** Characters of the output that are kept. */
const MAX_LOG = 4000;
/** Time in which a stop must end, the runner's grace included (ms). */
const STOP_TIMEOUT_MS = 45_000;

/** The process of one runner on its node. */
export interface RunnerProcess {
  /** Starts the runner with its secret, unless it was started before, and waits for its end. */
  start(settings: StartSettings, secret: string, events: RunnerEvents, signal: AbortSignal): Promise<RunnerEnd>;
  /** Waits for the end of a runner that an earlier session has started. */
  attach(runner: string, events: RunnerEvents, signal: AbortSignal): Promise<RunnerEnd>;
  /** Ends the runner, and resolves with true if the node has confirmed it. Never rejects. */
  stop(runner: string): Promise<boolean>;
  /** Forgets the node. */
  close(): void;
}

/** The login to nodes. */
export interface NodeLogin {
  /** User on the node; undefined for that of its record. */
  readonly user: string | undefined;
  /** File with the private key; undefined for the keys of the agent and of `~/.ssh`. */
  readonly identity: string | undefined;
}

/** Opens processes on nodes. */
export interface RunnerProcesses {
  /** Throws `SshError` if commands cannot be run on the node. */
  on(node: LeasedNode, login: NodeLogin): RunnerProcess;
  close(): void;
}

/** Logs in with the system's ssh. */
export class SshProcesses implements RunnerProcesses {
  private readonly clients = new Map<string | undefined, SshClient>();

  constructor(
    private readonly env: Readonly<Record<string, string | undefined>>,
    private readonly clock: Clock,
  ) {}

  on(node: LeasedNode, { user, identity }: NodeLogin): RunnerProcess {
    let client = this.clients.get(identity);
    if (client === undefined) {
      client = new SshClient(this.env, identity, process.stderr);
      this.clients.set(identity, client);
    }
    return new SshProcess(client, sshTarget(node, user), this.clock);
  }

  close(): void {
    for (const client of this.clients.values()) client.close();
  }
}

class SshProcess implements RunnerProcess {
  constructor(
    private readonly client: SshClient,
    private readonly target: NodeTarget,
    private readonly clock: Clock,
  ) {
    client.trust(target);
  }

  start(settings: StartSettings, secret: string, events: RunnerEvents, signal: AbortSignal): Promise<RunnerEnd> {
    return this.run(startScript(settings), `${secret}\n`, events, signal);
  }

  attach(runner: string, events: RunnerEvents, signal: AbortSignal): Promise<RunnerEnd> {
    return this.run(waitScript(runner), '', events, signal);
  }

  async stop(runner: string): Promise<boolean> {
    const ssh = this.client.start(this.target, posix(stopScript(runner)), ['ignore', 'ignore', 'ignore']);
    const timer = this.clock.schedule(STOP_TIMEOUT_MS, () => ssh.child.kill('SIGKILL'));
    try {
      return (await ssh.exited).code === 0;
    } catch (error) {
      if (error instanceof SshError) return false;
      throw error;
    } finally {
      timer.cancel();
    }
  }

  close(): void {
    this.client.forget(this.target);
  }

  private async run(script: string, input: string, events: RunnerEvents, signal: AbortSignal): Promise<RunnerEnd> {
    const session = new Session(events);
    const ssh = this.client.start(this.target, posix(script), ['pipe', 'pipe', 'pipe']);
    const { stdin, stdout, stderr } = ssh.child;
    const ended = linkSignals(signal);
    const kill = (): void => void ssh.child.kill('SIGKILL');
    ended.signal.addEventListener('abort', kill, { once: true });
    if (ended.signal.aborted) kill();
    try {
      // A session that ends before it has read its input is reported by its exit status.
      stdin?.on('error', () => undefined);
      stdin?.end(input);
      const read = session.read(stdout ?? new PassThrough().end());
      stderr?.on('data', (chunk: Buffer) => session.complain(chunk.toString()));
      const exit = await ssh.exited;
      await read;
      signal.throwIfAborted();
      return session.end(exit.code ?? SSH_FAILED);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SshError) return { kind: 'unreachable', started: session.isStarted, reason: error.message };
      throw error;
    } finally {
      ended.unlink();
    }
  }
}

/** Reads what the scripts print. */
class Session {
  isStarted = false;
  private found: RunnerEnd | undefined;
  private log = '';
  private complaint = '';

  constructor(private readonly events: RunnerEvents) {}

  async read(stdout: NodeJS.ReadableStream): Promise<void> {
    for await (const line of createInterface({ input: stdout, crlfDelay: Infinity })) this.note(line);
  }

  complain(text: string): void {
    this.complaint = (this.complaint + text).slice(-MAX_LOG);
  }

  end(status: number): RunnerEnd {
    if (this.found !== undefined) return this.found;
    const words = this.complaint.trim().split('\n').at(-1) ?? '';
    const reason = words === '' ? `ssh ended with status ${status}` : words;
    return { kind: 'unreachable', started: this.isStarted, reason };
  }

  private note(line: string): void {
    if (!line.startsWith(MARK)) {
      this.log = `${this.log}${line.slice(0, MAX_LOG)}\n`.slice(-MAX_LOG);
      return;
    }
    const [event, value = ''] = line.slice(MARK.length).trim().split(' ');
    if (event === 'started' || event === 'exists') {
      this.isStarted = true;
      this.events.onStarted();
    } else if (event === 'online') {
      this.isStarted = true;
      this.events.onOnline();
    } else if (event === 'ended') this.found = { kind: 'ended', status: Number(value), log: this.log.trim() };
    else if (event === 'lost' || event === 'absent') this.found = { kind: event };
  }
}
