/** Handles SIGUSR2: each signal writes a stack dump, and alternately starts and ends a CPU profile. */

import type { Logger, Clock, Timer } from '@nodepool/core';
import { CpuProfile } from './cpu-profile.js';

/** Limit (ms) of a profile, whose memory grows until it ends. */
const MAX_PROFILE_MS = 600_000;

export interface DiagnosticsOptions {
  /** Program name, part of the names of profiles. */
  readonly program: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes a dump of the running work. */
  readonly dump: (log: Logger) => void;
  /** Folder of the profiles. */
  readonly folder: string;
}

export class Diagnostics {
  private profile: CpuProfile | undefined;
  private limit: Timer | undefined;
  /** Signals are handled one after another. */
  private turn: Promise<void> = Promise.resolve();

  constructor(private readonly options: DiagnosticsOptions) {}

  /** Writes a dump at once, and starts or ends a profile. Never throws. */
  signalled(): void {
    const { log } = this.options;
    try {
      this.options.dump(log);
    } catch (error) {
      log.error('The stack dump failed', error);
    }
    this.enqueue(() => (this.profile === undefined ? this.begin() : this.end()));
  }

  /** Writes the running profile, if there is one. Resolves once it is written. */
  async stop(): Promise<void> {
    this.enqueue(() => this.end());
    await this.turn;
  }

  private enqueue(work: () => Promise<void>): void {
    this.turn = this.turn.then(work).catch((error: unknown) => this.options.log.error('CPU profile failed', error));
  }

  private async begin(): Promise<void> {
    const { log, clock } = this.options;
    this.profile = await CpuProfile.start();
    this.limit = clock.schedule(MAX_PROFILE_MS, () => this.enqueue(() => this.end()), { background: true });
    log.named('nodepool.stack_dump').info('CPU profile begins; the next SIGUSR2 ends it', {
      at_the_latest_after: MAX_PROFILE_MS / 1000,
    });
  }

  private async end(): Promise<void> {
    const { profile } = this;
    if (profile === undefined) return;
    this.profile = undefined;
    this.limit?.cancel();
    const file = await profile.save(this.options.folder, this.options.program, this.options.clock.now());
    this.options.log.named('nodepool.stack_dump').info('CPU profile written', { file });
  }
}
