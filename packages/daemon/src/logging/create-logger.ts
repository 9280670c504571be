/** The logger of the programs: named loggers with fields, each with its own winston logger. */

import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { systemClock, type Clock, type LogFields, type Logger } from '@nodepool/core';
import type * as Winston from 'winston';
import { ConsoleStream } from './console-stream.js';
import { LogFile } from './log-file.js';
import { jsonLine, textLine, type LogLine } from './log-format.js';
import { LogTransport } from './log-transport.js';
import type { EffectiveRule, LogDestination, LoggingConfig, LogLevel } from './logging-config.js';
import { consoleLogging, effectiveRule, LEVELS, stricter } from './logging-config.js';

export interface LoggerOptions {
  /** Default: `info` and above as text on stderr. */
  readonly config?: LoggingConfig;
  /** Name of the returned logger. Default `nodepool`. */
  readonly name?: string;
  readonly clock?: Clock;
  /** The console streams. Default: those of the process. */
  readonly stdout?: NodeJS.WritableStream;
  readonly stderr?: NodeJS.WritableStream;
}

/** The logger that owns the destinations. */
export interface RootLogger extends Logger {
  /** Folder of the first log file, also used for other files of the program; undefined without a log file. */
  readonly folder: string | undefined;
  /** Resolves once all lines are written and the files are closed. Later lines are dropped. Idempotent. */
  close(): Promise<void>;
}

/** Creates a logger and opens its destinations at once. Throws `LogFileError` if a file cannot be written. */
export function createLogger(options: LoggerOptions = {}): RootLogger {
  return new Root(new Loggers(options), options.name ?? 'nodepool');
}

const NO_FIELDS: LogFields = {};
const FORMATS = { text: textLine, json: jsonLine } as const;

/** The winston logger of one name, with its transports and levels, which winston looks up at each use. */
interface Channel {
  readonly name: string;
  readonly winston: Winston.Logger;
  readonly transports: Winston.Logger['transports'];
  readonly debug: boolean;
  readonly info: boolean;
}

class NamedLogger implements Logger {
  constructor(
    protected readonly loggers: Loggers,
    private readonly channel: Channel,
    private readonly fields: LogFields,
  ) {}

  debug(message: string, fields?: LogFields): void {
    if (this.channel.debug) this.write('debug', message, undefined, fields);
  }

  info(message: string, fields?: LogFields): void {
    if (this.channel.info) this.write('info', message, undefined, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.write('warn', message, undefined, fields);
  }

  error(message: string, error?: unknown, fields?: LogFields): void {
    this.write('error', message, error, fields);
  }

  with(fields: LogFields): Logger {
    return new NamedLogger(this.loggers, this.channel, merged(this.fields, fields));
  }

  named(name: string): Logger {
    return new NamedLogger(this.loggers, this.loggers.channel(name), this.fields);
  }

  private write(level: LogLevel, message: string, error: unknown, fields: LogFields | undefined): void {
    const { name, winston, transports } = this.channel;
    if (this.loggers.closed !== undefined || transports.length === 0) return;
    const line: LogLine = {
      level,
      message,
      time: this.loggers.clock.now(),
      logger: name,
      fields: fields === undefined ? this.fields : merged(this.fields, fields),
      error,
    };
    // Winston's logger does the same, but queues each line as a stream, which takes longer than the line itself.
    winston.format.transform(line);
    for (let index = 0; index < transports.length; index += 1) transports[index]?.write(line);
  }
}

class Root extends NamedLogger implements RootLogger {
  constructor(loggers: Loggers, name: string) {
    super(loggers, loggers.channel(name), NO_FIELDS);
  }

  get folder(): string | undefined {
    return this.loggers.folder;
  }

  close(): Promise<void> {
    return this.loggers.close();
  }
}

/** The winston loggers by name, and the streams that their transports share. */
class Loggers {
  readonly clock: Clock;
  private readonly config: LoggingConfig;
  private readonly streams = new Map<LogDestination, ConsoleStream | LogFile>();
  private readonly channels = new Map<string, Channel>();
  /** Set once the logger closes. */
  closed: Promise<void> | undefined;

  constructor(options: LoggerOptions) {
    this.clock = options.clock ?? systemClock;
    this.config = options.config ?? consoleLogging('info');
    for (const { destinations } of [this.config.root, ...this.config.loggers.values()]) {
      for (const each of destinations)
        if (!this.streams.has(each)) this.streams.set(each, open(each, this.clock, options));
    }
  }

  get folder(): string | undefined {
    for (const destination of this.streams.keys()) if (destination.kind === 'file') return dirname(destination.file);
    return undefined;
  }

  channel(name: string): Channel {
    let channel = this.channels.get(name);
    if (channel === undefined) {
      const winston = this.create(effectiveRule(this.config, name));
      const { transports } = winston;
      const [debug, info] = [winston.isLevelEnabled('debug'), winston.isLevelEnabled('info')];
      channel = { name, winston, transports, debug, info };
      this.channels.set(name, channel);
    }
    return channel;
  }

  close(): Promise<void> {
    this.closed ??= this.finish();
    return this.closed;
  }

  private create({ threshold, destinations }: EffectiveRule): Winston.Logger {
    const { createLogger: create, format } = loadWinston();
    // The logger formats each line once, for all destinations with the format of the first one.
    const common = destinations[0]?.format ?? 'text';
    const formatted = format.printf(FORMATS[common] as (info: Winston.Logform.TransformableInfo) => string);
    const logger = create({ levels: LEVELS, level: threshold, silent: destinations.length === 0, format: formatted });
    for (const destination of destinations) {
      const stream = this.streams.get(destination);
      if (stream === undefined) continue;
      const own = destination.format === common ? undefined : FORMATS[destination.format];
      logger.pipe(new LogTransport(stream, stricter(threshold, destination.threshold), own));
    }
    return logger;
  }

  private async finish(): Promise<void> {
    await Promise.all([...this.channels.values()].map(({ winston }) => finished(winston)));
    await Promise.all([...this.streams.values()].map(finished));
  }
}

/** Copies by assignment, because V8 gives each object with two spreads a layout of its own. */
function merged(fields: LogFields, further: LogFields): LogFields {
  return Object.assign({}, fields, further);
}

function open(destination: LogDestination, clock: Clock, { stdout, stderr }: LoggerOptions): ConsoleStream | LogFile {
  const consoles = { stdout: stdout ?? process.stdout, stderr: stderr ?? process.stderr };
  return destination.kind === 'console'
    ? new ConsoleStream(consoles[destination.stream])
    : new LogFile(destination, clock, (message) => consoles.stderr.write(`${message}\n`));
}

async function finished(stream: NodeJS.WritableStream): Promise<void> {
  const finish = once(stream, 'finish');
  stream.end();
  await finish;
}

const load = createRequire(__filename);

/** Loads winston on first use: it takes tens of milliseconds, which short commands without log lines save. */
function loadWinston(): typeof Winston {
  return load('winston') as typeof Winston;
}
