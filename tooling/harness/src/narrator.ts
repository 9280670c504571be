/** Says what happens, with the seconds since the beginning. */

import { systemClock } from '@nodepool/core';

export class Narrator {
  private readonly began = systemClock.monotonic();

  constructor(private readonly write: (line: string) => void) {}

  /** One line with the time. */
  say(line: string): void {
    const seconds = ((systemClock.monotonic() - this.began) / 1000).toFixed(2);
    this.write(`${seconds.padStart(8)} s  ${line}`);
  }

  /** Lines as they are. */
  text(lines: string): void {
    this.write(lines);
  }
}
