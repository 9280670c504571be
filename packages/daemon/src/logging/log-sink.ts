/** One destination of log lines: a winston logger with one transport. */

import { once } from 'node:events';
import { createRequire } from 'node:module';
import type * as Winston from 'winston';
import { ConsoleStream } from './console-stream.js';
import { LogFile } from './log-file.js';
import { jsonLine, textLine, type LogLine } from './log-format.js';
import { SEVERITY, type LogDestination } from './logging-config.js';

export interface Consoles {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** `info[MESSAGE]` is what winston's transports write. */
const MESSAGE = Symbol.for('message');

export class LogSink {
  readonly severity: number;
  private readonly render: (line: LogLine) => string;
  private readonly logger: Winston.Logger;
  private readonly transport: NodeJS.WritableStream;
  private readonly stream: ConsoleStream | LogFile;
  private readonly file: LogFile | undefined;
  private closing = false;

  /** Throws `LogFileError` when the file cannot be opened. */
  constructor(destination: LogDestination, consoles: Consoles) {
    this.severity = SEVERITY[destination.threshold];
    this.render = destination.format === 'json' ? jsonLine : textLine;
    if (destination.kind === 'file') {
      // Winston's own file transport swallows write errors, and loses the end of the log when it rotates.
      const report = (message: string): unknown => consoles.stderr.write(`${message}\n`);
      this.stream = this.file = new LogFile(destination.file, destination.rotation, report);
    } else {
      this.stream = new ConsoleStream(consoles[destination.stream]);
    }
    const { createLogger, format, transports } = loadWinston();
    this.transport = new transports.Stream({ stream: this.stream, eol: '\n' });
    // Levels were compared before a line gets to winston.
    const levels = { error: 0, warn: 1, info: 2, debug: 3 };
    this.logger = createLogger({ levels, level: 'debug', format: format((info) => info)() });
    this.logger.pipe(this.transport);
  }

  write(line: LogLine): void {
    if (this.closing || SEVERITY[line.level] < this.severity || this.file?.hasRoom() === false) return;
    this.logger.write({ level: line.level, message: line.message, [MESSAGE]: this.render(line) });
  }

  /** Resolves once all lines are written. */
  async close(): Promise<void> {
    this.closing = true;
    const handedOver = once(this.transport, 'finish');
    this.logger.end();
    await handedOver;
    const written = once(this.stream, 'finish');
    this.stream.end();
    await written;
  }
}

const load = createRequire(__filename);

/** Winston takes tens of milliseconds to load; short commands that log nothing go without. */
function loadWinston(): typeof Winston {
  return load('winston') as typeof Winston;
}
