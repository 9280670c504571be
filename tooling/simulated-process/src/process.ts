/**
 * A process of the simulated world with its own clock, which can be stopped (SIGSTOP), continued and killed. The code
 * of a killed process cannot be terminated, so its promises never settle and its callbacks never run.
 */

import type { Clock, Timer } from '@nodepool/core';

export class SimulatedProcess {
  readonly clock: Clock;
  private state: 'running' | 'paused' | 'dead' = 'running';
  /** Callbacks that arrived while the process was paused, in order. */
  private held: (() => void)[] = [];

  constructor(
    readonly name: string,
    private readonly world: Clock,
  ) {
    this.clock = {
      now: () => world.now(),
      monotonic: () => world.monotonic(),
      schedule: (delayMs, callback) => this.schedule(delayMs, callback),
    };
  }

  get dead(): boolean {
    return this.state === 'dead';
  }

  get paused(): boolean {
    return this.state === 'paused';
  }

  pause(): void {
    if (this.state === 'running') this.state = 'paused';
  }

  /** Continues the process and runs the held callbacks in order. */
  resume(): void {
    if (this.state !== 'paused') return;
    this.state = 'running';
    const held = this.held;
    this.held = [];
    for (const callback of held) this.world.schedule(0, () => this.deliver(callback));
  }

  kill(): void {
    this.state = 'dead';
    this.held = [];
  }

  /** Runs the callback now, after the pause if the process is paused, or never if it is dead. */
  deliver(callback: () => void): void {
    if (this.state === 'running') callback();
    else if (this.state === 'paused') this.held.push(callback);
  }

  /** Returns the outcome of `work` as delivered to the process. */
  receive<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(
        (value) => this.deliver(() => resolve(value)),
        (error: unknown) => this.deliver(() => reject(error instanceof Error ? error : new Error(String(error)))),
      );
    });
  }

  private schedule(delayMs: number, callback: () => void): Timer {
    if (this.dead) return { cancel: () => undefined };
    let cancelled = false;
    const timer = this.world.schedule(delayMs, () =>
      this.deliver(() => {
        if (!cancelled) callback();
      }),
    );
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }
}
