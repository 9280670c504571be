/**
 * Runs a program in a separate process, stops it with all its child processes, and keeps its output in a file for
 * diagnosis.
 */

import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { systemClock } from '@nodepool/core';

export interface ProgramOptions {
  /** For messages, e.g. `launcher 1`. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** File that the program's standard output and standard error are appended to. */
  readonly logFile: string;
  /** Variables to add to this process's environment; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /**
   * Starts the program in a new session, which an interrupt from the terminal does not reach. Linux distributes the
   * processors to sessions first (autogroups of sched(7)), so its threads can wait long for those of other sessions.
   * Default true.
   */
  readonly ownSession?: boolean;
}

/** Exit status or signal of a process; the other one is null. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Time that `stop` waits for the process to end before it kills it (ms). */
const DEFAULT_GRACE_MS = 60_000;

/** util-linux's `setpriv` makes the kernel kill the child when this process dies for any reason. */
const SETPRIV = '/usr/bin/setpriv';
/**
 * The kernel does not tell a child whose parent died before `setpriv` ran. This script therefore runs the command only
 * if its parent is still this process. Its arguments are the parent's process id and the command.
 */
const IF_PARENT_LIVES = '[ "$PPID" = "$0" ] && exec "$@"';
const DIES_WITH_PARENT = ['--pdeathsig', 'KILL', '--', '/bin/sh', '-c', IF_PARENT_LIVES];

const alive = new Set<ChildProcess>();
let killsAtExit = false;

export class Program {
  /** Resolves when the process has ended for any reason. Never rejects. */
  readonly exited: Promise<Exit>;
  private ended: Exit | undefined;

  private constructor(
    readonly name: string,
    readonly pid: number,
    readonly logFile: string,
    private readonly child: ChildProcess,
    private readonly leadsGroup: boolean,
  ) {
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        alive.delete(child);
        this.ended = { code, signal };
        resolve(this.ended);
      });
    });
  }

  /** Starts a program. If the command does not exist, the process ends immediately or this method rejects. */
  static async start(options: ProgramOptions): Promise<Program> {
    mkdirSync(dirname(options.logFile), { recursive: true });
    const { ownSession = true } = options;
    const log = openSync(options.logFile, 'a');
    try {
      const [command, args] = existsSync(SETPRIV)
        ? [SETPRIV, [...DIES_WITH_PARENT, String(process.pid), options.command, ...options.args]]
        : [options.command, [...options.args]];
      const child = spawn(command, args, {
        // In a separate session: an interrupt from the terminal reaches only this process, which stops the others in
        // order.
        detached: ownSession,
        stdio: ['ignore', log, log],
        env: { ...process.env, ...options.env },
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      });
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve);
        child.once('error', (cause) =>
          reject(new Error(`cannot start ${options.name}: ${options.command}: ${cause.message}`, { cause })),
        );
      });
      if (child.pid === undefined) throw new Error(`cannot start ${options.name}: it has no process id`);
      remember(child);
      return new Program(options.name, child.pid, options.logFile, child, ownSession);
    } finally {
      closeSync(log);
    }
  }

  /** Undefined while the process is running. */
  get exit(): Exit | undefined {
    return this.ended;
  }

  /** Sends a signal. Returns false if the process has ended. */
  signal(signal: NodeJS.Signals): boolean {
    return this.ended === undefined && this.child.kill(signal);
  }

  /**
   * Resolves when the process has ended by itself. After `timeoutMs`, kills it and rejects with the end of its log. If
   * `interrupted` aborts, terminates it with its child processes, and rejects with the signal's reason.
   */
  async ends(timeoutMs: number, interrupted?: AbortSignal): Promise<Exit> {
    const terminate = (): void => this.terminateGroup();
    interrupted?.addEventListener('abort', terminate, { once: true });
    if (interrupted?.aborted === true) terminate();
    const overdue = new AbortController();
    const timer = systemClock.schedule(timeoutMs, () => {
      if (this.signal('SIGKILL')) overdue.abort();
    });
    const exit = await this.exited;
    timer.cancel();
    interrupted?.removeEventListener('abort', terminate);
    interrupted?.throwIfAborted();
    if (overdue.signal.aborted)
      throw new Error(`${this.name} did not end within ${timeoutMs} ms\n${this.describeLog()}`);
    return exit;
  }

  /** Terminates the process, and kills it if it has not ended after `graceMs`. Idempotent. */
  async stop(graceMs = DEFAULT_GRACE_MS): Promise<Exit> {
    const deadline = systemClock.schedule(graceMs, () => this.signal('SIGKILL'));
    this.signal('SIGTERM');
    try {
      return await this.exited;
    } finally {
      deadline.cancel();
    }
  }

  /** Kills the process without warning, like a machine crash. */
  async kill(): Promise<Exit> {
    this.signal('SIGKILL');
    return await this.exited;
  }

  /** Returns the last lines of its output. */
  logTail(lines = 40): string {
    const text = existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8') : '';
    return text.trimEnd().split('\n').slice(-lines).join('\n');
  }

  /**
   * Resolves like `work`. Rejects with the end of the log if the process ends first, `work` fails, or `timeoutMs` have
   * passed; `work` receives a signal that aborts in these cases.
   */
  async while<T>(what: string, timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const timer = systemClock.schedule(timeoutMs, () => over.abort(new Error(`not within ${timeoutMs} ms`)));
    const givenUp = new Promise<never>((_, reject) => {
      over.signal.addEventListener('abort', () => reject(over.signal.reason as Error), { once: true });
    });
    const ended = this.exited.then((exit): never => {
      throw new Error(`the process ended: ${describeExit(exit)}`);
    });
    try {
      return await Promise.race([work(over.signal), ended, givenUp]);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${this.name}: ${what}: ${reason}\n${this.describeLog()}`, { cause });
    } finally {
      timer.cancel();
      // The race is already decided, so a later rejection is ignored.
      givenUp.catch(() => undefined);
      ended.catch(() => undefined);
      if (!over.signal.aborted) over.abort(new Error('the wait has ended'));
    }
  }

  /**
   * Terminates all processes of the group that the process leads, or the process alone if it leads none, and kills the
   * process after the usual grace. Each process receives SIGTERM once, because a second one would end the cleanup of a
   * shell script.
   */
  private terminateGroup(): void {
    if (this.ended !== undefined) return;
    const deadline = systemClock.schedule(DEFAULT_GRACE_MS, () => this.signal('SIGKILL'));
    void this.exited.then(() => deadline.cancel());
    if (this.leadsGroup) process.kill(-this.pid, 'SIGTERM');
    else this.signal('SIGTERM');
  }

  private describeLog(): string {
    return `--- last lines of its log, ${this.logFile}\n${this.logTail()}`;
  }
}

/** `exit status 1`, `SIGKILL`. */
export function describeExit(exit: Exit): string {
  return exit.signal ?? `exit status ${exit.code ?? 'unknown'}`;
}

function remember(child: ChildProcess): void {
  alive.add(child);
  if (killsAtExit) return;
  killsAtExit = true;
  process.once('exit', () => {
    for (const running of alive) running.kill('SIGKILL');
  });
}
