/**
 * The part of Python's `logging.config` schema (`version: 1`) that has a meaning here: levels and handlers of the root
 * and of named loggers, `propagate`, and handlers that write to a console or a file. Facts: the Python library
 * reference, "Configuration dictionary schema" and "Logging Levels".
 */

import type { FieldReader } from './field-reader.js';
import type { LogDestination, LogFormat, LoggerRule, LoggingConfig, LogThreshold } from './logging-config.js';

/** Adds to `notices` what is understood but has no effect; the reader collects the problems. */
export function readPythonLogging(reader: FieldReader, notices: string[]): LoggingConfig {
  if (reader.value('version') !== 1) reader.problem('version', 'expected 1, the only version that there is');
  const known = ['version', 'root', 'loggers', 'handlers', 'formatters', 'disable_existing_loggers'];
  for (const key of reader.unknownKeys(known)) notices.push(`${key} has no effect`);
  const jsonFormatters = readFormatters(reader.object('formatters'), notices);
  const handlers = readHandlers(reader.object('handlers'), jsonFormatters, notices);
  const loggers = new Map<string, LoggerRule>();
  const foreign: string[] = [];
  const section = reader.object('loggers');
  for (const name of section?.keys() ?? []) {
    const entry = section?.object(name);
    if (entry === undefined) continue;
    if (name !== 'nodepool' && !name.startsWith('nodepool.')) foreign.push(name);
    loggers.set(name, readLogger(entry, handlers));
  }
  if (foreign.length > 0) {
    notices.push(`loggers ${foreign.join(', ')}: have no effect, the names of all loggers begin with nodepool`);
  }
  const rootEntry = reader.object('root');
  const root = rootEntry === undefined ? undefined : readLogger(rootEntry, handlers);
  return {
    root: { threshold: root?.threshold ?? 'warn', destinations: root?.destinations ?? [], propagate: false },
    loggers,
  };
}

/** Destinations by name of the handler; undefined: one that cannot be had here. */
type Handlers = ReadonlyMap<string, LogDestination | undefined>;

function readLogger(entry: FieldReader, handlers: Handlers): LoggerRule {
  const destinations: LogDestination[] = [];
  for (const name of entry.texts('handlers') ?? []) {
    if (!handlers.has(name)) entry.problem('handlers', `there is no handler ${JSON.stringify(name)}`);
    const destination = handlers.get(name);
    if (destination !== undefined) destinations.push(destination);
  }
  const propagate = entry.value('propagate');
  return {
    threshold: readLevel(entry),
    destinations,
    propagate: !(propagate === false || propagate === 0 || propagate === 'no'),
  };
}

const LEVELS: Readonly<Record<string, LogThreshold | undefined>> = {
  DEBUG: 'debug',
  INFO: 'info',
  WARNING: 'warn',
  WARN: 'warn',
  ERROR: 'error',
  // Nothing is logged above `error` here.
  CRITICAL: 'error',
  FATAL: 'error',
};

function readLevel(entry: FieldReader): LogThreshold | undefined {
  const level = entry.value('level');
  if (level === null || level === 'NOTSET' || level === 0) return undefined;
  if (typeof level === 'number') return level <= 10 ? 'debug' : level <= 20 ? 'info' : level <= 30 ? 'warn' : 'error';
  const name = typeof level === 'string' ? level.toUpperCase() : '';
  const found = Object.hasOwn(LEVELS, name) ? LEVELS[name] : undefined;
  if (found === undefined) {
    entry.problem('level', `expected DEBUG, INFO, WARNING, ERROR or CRITICAL, not ${JSON.stringify(level)}`);
  }
  return found;
}

/** Names of the formatters that write JSON. */
function readFormatters(section: FieldReader | undefined, notices: string[]): ReadonlySet<string> {
  const json = new Set<string>();
  const others: string[] = [];
  for (const name of section?.keys() ?? []) {
    const entry = section?.object(name);
    const factory = entry?.value('class') ?? entry?.value('()') ?? null;
    if (typeof factory === 'string' && /json/i.test(factory)) json.add(name);
    else others.push(name);
  }
  if (others.length > 0) {
    notices.push(
      `formatters ${others.join(', ')}: have no effect, lines look as with "%(asctime)s %(levelname)s %(name)s: %(message)s"`,
    );
  }
  return json;
}

function readHandlers(section: FieldReader | undefined, json: ReadonlySet<string>, notices: string[]): Handlers {
  const handlers = new Map<string, LogDestination | undefined>();
  for (const name of section?.keys() ?? []) {
    const entry = section?.object(name);
    if (entry === undefined) continue;
    const formatter = entry.value('formatter');
    const format: LogFormat = typeof formatter === 'string' && json.has(formatter) ? 'json' : 'text';
    handlers.set(name, readHandler(name, entry, format, notices));
  }
  return handlers;
}

function readHandler(
  name: string,
  entry: FieldReader,
  format: LogFormat,
  notices: string[],
): LogDestination | undefined {
  const threshold = readLevel(entry) ?? 'debug';
  const kind = entry.requiredText('class');
  switch (kind) {
    case undefined:
      return undefined;
    case 'logging.StreamHandler':
      return {
        kind: 'console',
        stream: entry.value('stream') === 'ext://sys.stdout' ? 'stdout' : 'stderr',
        threshold,
        format,
      };
    case 'logging.NullHandler':
      return undefined;
    case 'logging.handlers.TimedRotatingFileHandler':
    case 'logging.handlers.WatchedFileHandler':
      notices.push(
        `handler ${name}: the file is neither rotated by time nor opened again; use logrotate with copytruncate`,
      );
      return fileOf(entry, threshold, format, false);
    case 'logging.FileHandler':
      return fileOf(entry, threshold, format, false);
    case 'logging.handlers.RotatingFileHandler':
      return fileOf(entry, threshold, format, true);
    default:
      notices.push(
        `handler ${name}: ${kind} is not there, nothing is written to it; console and file handlers are there`,
      );
      return undefined;
  }
}

function fileOf(
  entry: FieldReader,
  threshold: LogThreshold,
  format: LogFormat,
  rotates: boolean,
): LogDestination | undefined {
  const file = entry.requiredText('filename');
  if (file === undefined) return undefined;
  // As in Python: without either of the two the file is never put aside.
  const maxBytes = rotates && entry.value('maxBytes') !== 0 ? entry.count('maxBytes') : undefined;
  const backups = rotates && entry.value('backupCount') !== 0 ? entry.count('backupCount') : undefined;
  const rotation = maxBytes === undefined || backups === undefined ? undefined : { maxBytes, keep: backups + 1 };
  return { kind: 'file', file, threshold, format, rotation };
}
