/** A log on the terminal with the time of a virtual clock. */

import { reasonOf, type LogFields, type Logger } from '@nodepool/core';
import type { VirtualClock } from '@nodepool/core/testing';
import { seconds } from './report.js';

/** Returns a logger that prints warnings and errors. */
export function terminalLog(clock: VirtualClock, fixed: LogFields = {}): Logger {
  const print = (message: string, fields: LogFields = {}): void => {
    const texts = Object.entries({ ...fixed, ...fields }).map(([name, value]) => `${name}=${textOf(value)}`);
    process.stdout.write(`${seconds(clock.monotonic())} ${message} ${texts.join(' ')}\n`);
  };
  return {
    debug: () => undefined,
    info: () => undefined,
    warn: print,
    error: (message, error, fields) => print(message, { ...fields, error }),
    with: (fields) => terminalLog(clock, { ...fixed, ...fields }),
    named: () => terminalLog(clock, fixed),
  };
}

function textOf(value: unknown): string {
  return value instanceof Error ? reasonOf(value) : JSON.stringify(value);
}
