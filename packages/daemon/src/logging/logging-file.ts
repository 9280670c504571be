/**
 * Reads a logging configuration (`-l FILE`), YAML or JSON. Two forms are understood.
 *
 * Ours:
 *
 *     level: info                     # debug, info, warn, error or off; default info
 *     format: text                    # text or json; default text
 *     loggers:                        # other levels for loggers and those below them
 *       nodepool.zookeeper: debug
 *     destinations:                   # default: console: stderr
 *       - console: stderr             # or stdout
 *       - file: /var/log/nodepool/launcher.log
 *         level: debug                # this and above; default: all that the loggers let through
 *         format: json
 *         max-bytes: 104857600        # then start a new file; default: never
 *         keep: 5                     # files, the current one included; default 5
 *
 * And that of Python's `logging.config` with `version: 1`, which existing installations have; see `python-logging.ts`.
 */

import { readFile } from 'node:fs/promises';
import { LineIndex, parseYaml } from '@nodepool/pyyaml';
import { isJsonObject, reasonOf } from '@nodepool/core';
import { FieldReader, type Problem } from './field-reader.js';
import type { LogDestination, LogFormat, LoggerRule, LoggingConfig, LogThreshold } from './logging-config.js';
import { readPythonLogging } from './python-logging.js';

export interface LoadedLogging {
  readonly config: LoggingConfig;
  /** What of the file has no effect, and why; to be logged as warnings. */
  readonly notices: readonly string[];
}

/** The file cannot be used; the message names every problem with its place. */
export class LoggingConfigError extends Error {
  readonly code = 'logging-config';
  constructor(
    readonly file: string,
    readonly problems: readonly string[],
    cause?: unknown,
  ) {
    super(`the logging configuration ${file} cannot be used:\n${problems.map((line) => `  ${line}`).join('\n')}`, {
      cause,
    });
    this.name = 'LoggingConfigError';
  }
}

/** Reads the file. Rejects with `LoggingConfigError`. */
export async function loadLoggingConfig(file: string): Promise<LoadedLogging> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new LoggingConfigError(
      file,
      [`it cannot be read: ${reasonOf(error)}; check the path and its permissions`],
      error,
    );
  }
  return parseLoggingConfig(text, file);
}

/** What `loadLoggingConfig` does with the text of the file. Throws `LoggingConfigError`. */
export function parseLoggingConfig(text: string, file: string): LoadedLogging {
  if (/^\s*\[(loggers|handlers|formatters)\]\s*$/m.test(text)) {
    throw new LoggingConfigError(file, [
      "it is an ini file of Python's logging; write the same as YAML, with `version: 1` at its top or in the form of the manual",
    ]);
  }
  const data = parse(text, file);
  if (!isJsonObject(data)) {
    throw new LoggingConfigError(file, ['it must be a map, e.g. `level: info`']);
  }
  const problems: Problem[] = [];
  const reader = new FieldReader(data, '', problems);
  const notices: string[] = [];
  const config = 'version' in data ? readPythonLogging(reader, notices) : readOwnForm(reader);
  if (problems.length > 0) {
    throw new LoggingConfigError(
      file,
      problems.map((problem) => (problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`)),
    );
  }
  return { config, notices: notices.map((notice) => `${file}: ${notice}`) };
}

function parse(text: string, file: string): unknown {
  const { document, problems } = parseYaml(text);
  if (document !== undefined && problems.length === 0) return document.value;
  const lines = new LineIndex(text);
  throw new LoggingConfigError(
    file,
    problems.map(({ span, expected, found }) => {
      const { line, column } = lines.position(span.start);
      return `line ${line}, column ${column}: expected ${expected}, found ${found}`;
    }),
  );
}

const THRESHOLDS = ['debug', 'info', 'warn', 'error', 'off'] as const satisfies readonly LogThreshold[];
const FORMATS = ['text', 'json'] as const satisfies readonly LogFormat[];

function readOwnForm(reader: FieldReader): LoggingConfig {
  reader.onlyKeys(['level', 'format', 'loggers', 'destinations']);
  const threshold = reader.choice('level', THRESHOLDS) ?? 'info';
  const format = reader.choice('format', FORMATS) ?? 'text';
  const loggers = new Map<string, LoggerRule>();
  const levels = reader.object('loggers');
  for (const name of levels?.keys() ?? []) {
    loggers.set(name, { threshold: levels?.choice(name, THRESHOLDS), destinations: [], propagate: true });
  }
  const listed = reader.objects('destinations')?.flatMap((entry) => readDestination(entry, format) ?? []);
  const destinations: readonly LogDestination[] = listed ?? [
    { kind: 'console', stream: 'stderr', threshold: 'debug', format },
  ];
  return { root: { threshold, destinations, propagate: false }, loggers };
}

function readDestination(reader: FieldReader, defaultFormat: LogFormat): LogDestination | undefined {
  const threshold = reader.choice('level', THRESHOLDS) ?? 'debug';
  const format = reader.choice('format', FORMATS) ?? defaultFormat;
  if (reader.has('console')) {
    reader.onlyKeys(['console', 'level', 'format']);
    return { kind: 'console', stream: reader.choice('console', ['stderr', 'stdout']) ?? 'stderr', threshold, format };
  }
  reader.onlyKeys(['file', 'level', 'format', 'max-bytes', 'keep']);
  const file = reader.requiredText('file');
  const maxBytes = reader.count('max-bytes');
  const keep = reader.count('keep') ?? 5;
  const rotation = maxBytes === undefined ? undefined : { maxBytes, keep };
  return file === undefined ? undefined : { kind: 'file', file, threshold, format, rotation };
}
