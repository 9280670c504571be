/** A winston transport that passes each line on at once. Those of winston queue every line in a stream of their own. */

import { Writable } from 'node:stream';
import type { LogLine } from './log-format.js';
import { LEVELS, type LogThreshold } from './logging-config.js';

/** The property in which winston's formats store the text of a line. */
const MESSAGE = Symbol.for('message');

export class LogTransport extends Writable {
  /** `format` replaces the text that the logger's format has produced. The transport does not end `stream`. */
  constructor(
    private readonly stream: NodeJS.WritableStream,
    readonly level: LogThreshold,
    private readonly format: ((line: LogLine) => string) | undefined,
  ) {
    super({ objectMode: true });
  }

  /** `chunk` is a `LogLine`, as all objects that the logger receives. */
  override write(chunk: unknown): boolean {
    const line = chunk as LogLine;
    if (LEVELS[line.level] > LEVELS[this.level]) return true;
    const text = this.format === undefined ? String(line[MESSAGE]) : this.format(line);
    this.stream.write(`${text}\n`);
    return true;
  }
}
