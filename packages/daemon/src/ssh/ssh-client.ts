/** Runs the system's ssh. It trusts the given host keys only, and reads no configuration file. */

import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Writable } from 'node:stream';
import { posix, quote, SSH_FAILED, sshOptions } from './options.js';
import { SshError } from './ssh-error.js';
import type { NodeTarget } from './target.js';

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Returns the path of a program, or undefined if it is not installed. */
export function findProgram(name: string, path = ''): string | undefined {
  return path
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Logs in to leased nodes. */
export class SshClient {
  private readonly folder: string;
  private readonly program: string;
  private readonly children = new Set<ChildProcess>();
  private readonly killAll = (): void => {
    for (const child of this.children) child.kill('SIGKILL');
  };

  /** Throws `SshError` if ssh is not installed. */
  constructor(
    private readonly env: Readonly<Record<string, string | undefined>>,
    /** File with the private key; undefined for those of the agent and of `~/.ssh`. */
    private readonly identity: string | undefined,
    /** Receives the output of programs other than the command. */
    private readonly stderr: Writable,
  ) {
    const program = findProgram('ssh', env['PATH']);
    if (program === undefined) {
      throw new SshError('ssh is not installed or not on the PATH (Debian: apt-get install openssh-client)');
    }
    this.program = program;
    this.folder = mkdtempSync(join(tmpdir(), 'nodepool-ssh-'));
    // A second interruption ends this process at once.
    process.once('exit', this.killAll);
  }

  /** Trusts the host keys of a node, and no others, in logins to it. */
  trust({ id, knownHosts }: NodeTarget): void {
    writeFileSync(this.knownHostsOf(id), `${knownHosts.join('\n')}\n`, { mode: 0o600 });
  }

  /** Removes what `trust` has stored. */
  forget({ id }: NodeTarget): void {
    rmSync(this.knownHostsOf(id), { force: true });
  }

  /** Returns the command line of ssh for a node, without user, port, host and command. */
  commandFor({ id }: NodeTarget): readonly [string, ...string[]] {
    return [this.program, ...sshOptions(this.knownHostsOf(id), this.identity)];
  }

  start(target: NodeTarget, remoteCommand: string, stdio: StdioOptions): RunningChild {
    const { user, port, address } = target;
    const [program, ...args] = this.commandFor(target);
    return this.spawn(program, [...args, '-T', '-p', String(port), '-l', user, '--', address, remoteCommand], stdio);
  }

  /** Logs in with the streams of this process, or runs a command with them. */
  login(target: NodeTarget, command: readonly string[]): RunningChild {
    const { user, port, address } = target;
    const [program, ...options] = this.commandFor(target);
    const remote = command.length === 0 ? [] : [command.map(quote).join(' ')];
    const args = [...options, '-p', String(port), '-l', user, '--', address, ...remote];
    return this.spawn(program, args, 'inherit', false);
  }

  /** Runs a remote script of our own to its end. Resolves with the exit status; `SSH_FAILED` if a signal ended ssh. */
  async script(target: NodeTarget, script: string): Promise<number> {
    return await this.end(this.start(target, posix(script), ['ignore', 'pipe', 'pipe']));
  }

  /** Runs another program, such as scp, to its end. Resolves with the exit status, as `script` does. */
  async run(program: string, args: readonly string[]): Promise<number> {
    return await this.end(this.spawn(program, args, ['ignore', 'pipe', 'pipe']));
  }

  private knownHostsOf(id: string): string {
    return join(this.folder, `known_hosts-${id.replaceAll(/[^A-Za-z0-9]/g, '_')}`);
  }

  private async end({ child, exited }: RunningChild): Promise<number> {
    child.stdout?.pipe(this.stderr, { end: false });
    child.stderr?.pipe(this.stderr, { end: false });
    return (await exited).code ?? SSH_FAILED;
  }

  private spawn(program: string, args: readonly string[], stdio: StdioOptions, detached = true): RunningChild {
    // In a session of its own, Ctrl-C in the terminal does not end ssh before the command's status has arrived.
    const child = spawn(program, args, { stdio, env: this.env, detached });
    this.children.add(child);
    const exited = new Promise<ChildExit>((resolve, reject) => {
      child.once('error', (cause) => reject(new SshError(`cannot run ${program}: ${cause.message}`, { cause })));
      child.once('close', (code, signal) => resolve({ code, signal }));
    });
    exited.then(
      () => this.children.delete(child),
      () => this.children.delete(child),
    );
    return { child, exited };
  }

  /** Ends all programs and deletes the temporary files. */
  close(): void {
    this.killAll();
    process.off('exit', this.killAll);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface RunningChild {
  readonly child: ChildProcess;
  /** Resolves after the end of the process and of its output. */
  readonly exited: Promise<ChildExit>;
}
