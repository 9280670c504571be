/** A client process as the round sees it: commands, reports, signals, and unexpected exits. */

import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { systemClock } from '@nodepool/core';
import type { Order, Report } from './worker/protocol.js';

/** Path of the built program, also if this file runs from its sources. */
const PROGRAM = join(__dirname, '..', 'dist', 'worker', 'main.js');
const MAX_STDERR_CHARACTERS = 4000;

export class WorkerProcess {
  private readonly child: ChildProcess;
  private stderr = '';
  private ended: string | undefined;
  private readonly waiters = new Map<Report | 'end', () => void>();

  constructor(readonly name: string) {
    this.child = fork(PROGRAM, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] });
    this.child.stderr?.on('data', (piece: Buffer) => {
      this.stderr = (this.stderr + piece.toString()).slice(-MAX_STDERR_CHARACTERS);
    });
    this.child.on('message', (message) => this.waiters.get(message as Report)?.());
    this.child.on('error', (error) => this.over(error.message));
    this.child.on('exit', (code, signal) => this.over(signal ?? `code ${code ?? '?'}`));
  }

  /** The reason why the process counts as crashed, if it does. */
  get crash(): string | undefined {
    if (this.ended === undefined || this.ended === 'code 0') return undefined;
    return `process ${this.name} ended with ${this.ended}: ${this.stderr}`;
  }

  /** Sends a command and waits for the report. Rejects if the process ends, and at the deadline. */
  async order(order: Order, report: Report | 'end', withinMs: number): Promise<void> {
    if (this.ended !== undefined) throw new Error(this.crash ?? `process ${this.name} has ended`);
    const done = new Promise<boolean>((resolve) => {
      const timer = systemClock.schedule(withinMs, () => resolve(false));
      const tell = (): void => {
        timer.cancel();
        resolve(true);
      };
      this.waiters.set(report, tell);
      if (report !== 'end') this.waiters.set('end', tell);
    });
    this.child.send(order);
    const inTime = await done;
    this.waiters.clear();
    if (!inTime) throw new Error(`process ${this.name} did not report "${report}" within ${withinMs} ms`);
    if (report !== 'end' && this.hasEnded()) throw new Error(this.crash ?? `process ${this.name} ended too early`);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
    this.child.kill(signal);
  }

  private hasEnded(): boolean {
    return this.ended !== undefined;
  }

  private over(how: string): void {
    this.ended ??= how;
    this.waiters.get('end')?.();
  }
}
