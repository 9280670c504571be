/** Reports progress with the seconds since the start. */

import { systemClock } from '@nodepool/core';

export class Narrator {
  private readonly began = systemClock.monotonic();

  constructor(private readonly write: (line: string) => void) {}

  /** Prints a line with the time. */
  say(line: string): void {
    const seconds = ((systemClock.monotonic() - this.began) / 1000).toFixed(2);
    this.write(`${seconds.padStart(8)} s  ${line}`);
  }

  /** Prints lines unchanged. */
  text(lines: string): void {
    this.write(lines);
  }
}
