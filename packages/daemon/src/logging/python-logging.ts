/** Converts a logging configuration in the form of Python's `logging.config` (`version: 1`). */

import type { KeyPath } from '@nodepool/config';
import type { LoadedLogging, LogDestination, LogFormat, LoggerRule, LoggingConfig } from './logging-config.js';
import { isRotationUnit, type TimedRotation } from './timed-rotation.js';
import { thresholdOf, type PythonForm, type PythonHandler, type PythonLogger } from './logging-schema.js';

const KEYS = ['version', 'root', 'loggers', 'handlers', 'formatters', 'disable_existing_loggers'];
const LINE = '%(asctime)s %(levelname)s %(name)s: %(message)s';

/** Converts the form. Reports handlers that the file does not define; omits handlers that are not supported. */
export function fromPython(form: PythonForm, report: (path: KeyPath, expected: string) => void): LoadedLogging {
  const notices: string[] = [];
  for (const key of Object.keys(form)) if (!KEYS.includes(key)) notices.push(`${key} has no effect`);
  const json = jsonFormatters(form, notices);
  const handlers = new Map(
    Object.entries(form.handlers ?? {}).map(([name, handler]) => [name, destinationOf(name, handler, json, notices)]),
  );
  const foreign = Object.keys(form.loggers ?? {}).filter((name) => !/^nodepool(\.|$)/.test(name));
  if (foreign.length > 0) {
    notices.push(`loggers ${foreign.join(', ')}: have no effect, the names of all loggers begin with nodepool`);
  }
  const ruleOf = (path: KeyPath, { level, handlers: names = [], propagate }: PythonLogger): LoggerRule => {
    for (const [index, name] of names.entries()) {
      if (!handlers.has(name)) report([...path, 'handlers', index], 'the name of one of the handlers');
    }
    return {
      threshold: thresholdOf(level),
      destinations: names.flatMap((name) => handlers.get(name) ?? []),
      propagate: !(propagate === false || propagate === 0 || propagate === 'no'),
    };
  };
  const root = ruleOf(['root'], form.root ?? {});
  const loggers = Object.entries(form.loggers ?? {}).map(
    ([name, logger]) => [name, ruleOf(['loggers', name], logger)] as const,
  );
  const config: LoggingConfig = {
    root: { ...root, threshold: root.threshold ?? 'warn', propagate: false },
    loggers: new Map(loggers),
  };
  return { config, notices };
}

function jsonFormatters({ formatters = {} }: PythonForm, notices: string[]): ReadonlySet<unknown> {
  const isJson = (name: string): boolean => /json/i.test(formatters[name]?.class ?? formatters[name]?.['()'] ?? '');
  const isBuiltIn = (name: string): boolean => {
    const { format, datefmt = null, style = '%' } = formatters[name] ?? {};
    return format === LINE && datefmt === null && style === '%';
  };
  const others = Object.keys(formatters).filter((name) => !isJson(name) && !isBuiltIn(name));
  if (others.length > 0)
    notices.push(`formatters ${others.join(', ')}: have no effect, lines have the format "${LINE}"`);
  return new Set(Object.keys(formatters).filter(isJson));
}

function destinationOf(
  name: string,
  handler: PythonHandler,
  json: ReadonlySet<unknown>,
  notices: string[],
): LogDestination | undefined {
  const { class: kind, filename: file = '', maxBytes = 0, backupCount = 0 } = handler;
  const format: LogFormat = json.has(handler.formatter) ? 'json' : 'text';
  const common = { threshold: thresholdOf(handler.level) ?? 'debug', format };
  switch (kind) {
    case 'logging.StreamHandler':
      return { ...common, kind: 'console', stream: handler.stream === 'ext://sys.stdout' ? 'stdout' : 'stderr' };
    case 'logging.NullHandler':
      return undefined;
    case 'logging.handlers.RotatingFileHandler': {
      // As in Python, the file is rotated only if both are set.
      const rotates = maxBytes > 0 && backupCount > 0;
      return { ...common, kind: 'file', file, rotation: rotates ? { maxBytes, keep: backupCount + 1 } : undefined };
    }
    case 'logging.handlers.TimedRotatingFileHandler':
      return { ...common, kind: 'file', file, rotation: timedRotationOf(name, handler, notices) };
    case 'logging.handlers.WatchedFileHandler':
      return { ...common, kind: 'file', file, rotation: undefined, watch: true };
    case 'logging.FileHandler':
      return { ...common, kind: 'file', file, rotation: undefined };
    default:
      notices.push(
        `handler ${name}: ${kind} is not supported, so nothing is written to it; supported are console and file handlers`,
      );
      return undefined;
  }
}

function timedRotationOf(
  name: string,
  { when = 'h', interval = 1, backupCount = 0, utc = false, atTime }: PythonHandler,
  notices: string[],
): TimedRotation | undefined {
  const unit = when.toUpperCase();
  if (!isRotationUnit(unit)) {
    notices.push(`handler ${name}: the file is not rotated, "when: ${when}" is none of S, M, H, D, midnight, W0 to W6`);
    return undefined;
  }
  if (atTime !== undefined && atTime !== null) notices.push(`handler ${name}: atTime has no effect`);
  return { unit, interval, keep: backupCount, utc };
}
