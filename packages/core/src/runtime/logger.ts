/**
 * Logging. A log line is a constant message plus fields; the usual ones are `event_id`, `node_request_id`, `node_id`,
 * `provider`, `pool`, `label`.
 */

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** `error` goes into the field `error`, with its stack and causes. */
  error(message: string, error?: unknown, fields?: LogFields): void;
  /** A logger that adds these fields to every line. */
  with(fields: LogFields): Logger;
  /** A logger of another name, e.g. `nodepool.stack_dump`. */
  named(name: string): Logger;
}

/** Says nothing. For tests and for code that was given no logger. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silentLogger,
  named: () => silentLogger,
};
