/** The logger of the programs: named loggers with fields, on winston's transports. */

import { dirname } from 'node:path';
import { systemClock, type Clock, type LogFields, type Logger } from '@nodepool/core';
import type { LogLine } from './log-format.js';
import { LogSink } from './log-sink.js';
import {
  consoleLogging,
  effectiveRule,
  SEVERITY,
  type LogDestination,
  type LogFormat,
  type LoggingConfig,
  type LogLevel,
  type LogThreshold,
} from './logging-config.js';

export interface LoggerOptions {
  /** Default: `info` and above as text on stderr. */
  readonly config?: LoggingConfig;
  /** Name of the logger that is returned. Default `nodepool`. */
  readonly name?: string;
  readonly clock?: Clock;
  /** Where the consoles are. Default: those of the process. */
  readonly stdout?: NodeJS.WritableStream;
  readonly stderr?: NodeJS.WritableStream;
}

/** The logger that owns the destinations. */
export interface RootLogger extends Logger {
  /** Folder of the first log file; undefined: there is none. Where other files of the program belong. */
  readonly folder: string | undefined;
  /** Resolves once everything that was logged is written, files are closed, and nothing is logged any more. Idempotent. */
  close(): Promise<void>;
}

/** Opens the destinations at once; throws `LogFileError` when a file cannot be written. */
export function createLogger(options: LoggerOptions = {}): RootLogger {
  return new Root(options);
}

/** A logger with one console, stderr unless the options say otherwise. */
export function createConsoleLogger(
  threshold: LogThreshold,
  options: Omit<LoggerOptions, 'config'> & { readonly format?: LogFormat } = {},
): RootLogger {
  return createLogger({ ...options, config: consoleLogging(threshold, options.format) });
}

const NO_FIELDS: LogFields = {};

/** Where the lines of one name go, and from which severity on. */
interface Route {
  readonly severity: number;
  readonly sinks: readonly LogSink[];
}

class NamedLogger implements Logger {
  constructor(
    protected readonly routes: Routes,
    private readonly name: string,
    private readonly fields: LogFields,
    private readonly route: Route,
  ) {}

  debug(message: string, fields?: LogFields): void {
    if (this.route.severity <= SEVERITY.debug) this.write('debug', message, undefined, fields);
  }

  info(message: string, fields?: LogFields): void {
    if (this.route.severity <= SEVERITY.info) this.write('info', message, undefined, fields);
  }

  warn(message: string, fields?: LogFields): void {
    if (this.route.severity <= SEVERITY.warn) this.write('warn', message, undefined, fields);
  }

  error(message: string, error?: unknown, fields?: LogFields): void {
    if (this.route.severity <= SEVERITY.error) this.write('error', message, error, fields);
  }

  with(fields: LogFields): Logger {
    return new NamedLogger(this.routes, this.name, { ...this.fields, ...fields }, this.route);
  }

  named(name: string): Logger {
    return new NamedLogger(this.routes, name, this.fields, this.routes.of(name));
  }

  private write(level: LogLevel, message: string, error: unknown, fields: LogFields | undefined): void {
    const line: LogLine = {
      time: this.routes.clock.now(),
      level,
      logger: this.name,
      message,
      fields: fields === undefined ? this.fields : { ...this.fields, ...fields },
      error,
    };
    for (const sink of this.route.sinks) sink.write(line);
  }
}

class Root extends NamedLogger implements RootLogger {
  readonly folder: string | undefined;

  constructor(options: LoggerOptions) {
    const routes = new Routes(options);
    const name = options.name ?? 'nodepool';
    super(routes, name, NO_FIELDS, routes.of(name));
    this.folder = routes.folder;
  }

  close(): Promise<void> {
    return this.routes.close();
  }
}

/** Finds the route of each name; owns the sinks. */
class Routes {
  readonly clock: Clock;
  private readonly config: LoggingConfig;
  private readonly sinks = new Map<LogDestination, LogSink>();
  private readonly byName = new Map<string, Route>();
  private closed: Promise<void> | undefined;

  constructor(options: LoggerOptions) {
    this.clock = options.clock ?? systemClock;
    this.config = options.config ?? consoleLogging('info');
    const stderr = options.stderr ?? process.stderr;
    const consoles = { stdout: options.stdout ?? process.stdout, stderr };
    for (const rule of [this.config.root, ...this.config.loggers.values()]) {
      for (const destination of rule.destinations) {
        if (!this.sinks.has(destination)) this.sinks.set(destination, new LogSink(destination, consoles));
      }
    }
  }

  get folder(): string | undefined {
    for (const destination of this.sinks.keys()) if (destination.kind === 'file') return dirname(destination.file);
    return undefined;
  }

  of(name: string): Route {
    const known = this.byName.get(name);
    if (known !== undefined) return known;
    const rule = effectiveRule(this.config, name);
    const sinks = rule.destinations.flatMap((destination) => this.sinks.get(destination) ?? []);
    const quietest = Math.min(...sinks.map((sink) => sink.severity), SEVERITY.off);
    const route = { severity: Math.max(SEVERITY[rule.threshold], quietest), sinks };
    this.byName.set(name, route);
    return route;
  }

  close(): Promise<void> {
    this.closed ??= Promise.all([...this.sinks.values()].map((sink) => sink.close())).then(() => undefined);
    return this.closed;
  }
}
