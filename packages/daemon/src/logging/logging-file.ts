/**
 * Reads a logging configuration (`-l FILE`), YAML or JSON, in one of two forms: that of the manual (README of the
 * command line, "Logging"), and that of Python's `logging.config` with `version: 1`, which existing installations use.
 */

import { readFile } from 'node:fs/promises';
import { formatProblem, readBySchema, type FileForm } from '@nodepool/config';
import { fileFaultOf } from '@nodepool/core';
import type { LoadedLogging, LogDestination, LogFormat, LoggingConfig } from './logging-config.js';
import { OWN_FORM, PYTHON_FORM, thresholdOf, type OwnDestination, type OwnForm } from './logging-schema.js';
import { fromPython } from './python-logging.js';

/** The file is not usable; the message names every problem with its place. */
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
    const problem = `it cannot be read: ${fileFaultOf(error)}; check the path and its permissions`;
    throw new LoggingConfigError(file, [problem], error);
  }
  return await parseLoggingConfig(text, file);
}

/** Parses the text of the file. Rejects with `LoggingConfigError`. */
export async function parseLoggingConfig(text: string, file: string): Promise<LoadedLogging> {
  if (/^\s*\[(loggers|handlers|formatters)\]\s*$/m.test(text)) {
    throw new LoggingConfigError(file, [
      "it is an ini file of Python's logging; write the same as YAML, with `version: 1` at its top or in the form of the manual",
    ]);
  }
  const result = await readBySchema(text, file, (value) => ('version' in value ? PYTHON : OWN));
  if (!result.ok) throw new LoggingConfigError(file, result.problems.map(formatProblem));
  const { config, notices } = result.value;
  return { config, notices: notices.map((notice) => `${file}: ${notice}`) };
}

const OWN: FileForm<LoadedLogging> = {
  schema: OWN_FORM,
  interpret: (form) => ({ config: fromOwn(form), notices: [] }),
};

const PYTHON: FileForm<LoadedLogging> = {
  schema: PYTHON_FORM,
  interpret: fromPython,
};

function fromOwn({ level, format = 'text', loggers = {}, destinations }: OwnForm): LoggingConfig {
  const console: LogDestination = { kind: 'console', stream: 'stderr', threshold: 'debug', format };
  return {
    root: {
      threshold: thresholdOf(level) ?? 'info',
      destinations: destinations?.map((each) => destinationOf(each, format)) ?? [console],
      propagate: false,
    },
    loggers: new Map(
      Object.entries(loggers).map(([name, each]) => [
        name,
        { threshold: thresholdOf(each), destinations: [], propagate: true },
      ]),
    ),
  };
}

function destinationOf(entry: OwnDestination, defaultFormat: LogFormat): LogDestination {
  const common = { threshold: thresholdOf(entry.level) ?? 'debug', format: entry.format ?? defaultFormat };
  if (entry.file === undefined) return { ...common, kind: 'console', stream: entry.console ?? 'stderr' };
  const { 'max-bytes': maxBytes, keep = 5 } = entry;
  return {
    ...common,
    kind: 'file',
    file: entry.file,
    rotation: maxBytes === undefined ? undefined : { maxBytes, keep },
  };
}
