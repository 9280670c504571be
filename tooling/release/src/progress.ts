/** Progress messages with the seconds since the start. */

import { systemClock } from '@nodepool/core';

export class Progress {
  private readonly began = systemClock.monotonic();

  constructor(private readonly write: (text: string) => void) {}

  say(line: string): void {
    const seconds = Math.round((systemClock.monotonic() - this.began) / 1000);
    this.write(`[${String(seconds).padStart(4)}s] ${line}\n`);
  }

  /** Prints lines unchanged. */
  text(text: string): void {
    this.write(text);
  }
}
