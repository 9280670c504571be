/**
 * Logging. A log line is a constant message plus fields; the usual fields are `event_id`, `node_request_id`, `node_id`,
 * `provider`, `pool`, `label`.
 */

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** Logs an error; `error` becomes the field `error`, with its stack and causes. */
  error(message: string, error?: unknown, fields?: LogFields): void;
  /** Returns a logger that adds these fields to every line. */
  with(fields: LogFields): Logger;
  /** Returns a logger of another name, e.g. `nodepool.stack_dump`. */
  named(name: string): Logger;
}

/** A logger that discards all lines, for tests and for code without a logger. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silentLogger,
  named: () => silentLogger,
};
