/** The two forms of a logging file as JSON Schemas, and the types of valid values. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import type { LogFormat, LogThreshold } from './logging-config.js';

/** Thresholds by level name. Higher levels map to `error`, the highest one here. */
const THRESHOLDS = {
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
  critical: 'error',
  fatal: 'error',
  off: 'off',
} as const satisfies Record<string, LogThreshold>;

/** A threshold as written: a name, or a number as in Python. YAML 1.1 reads an unquoted `off` as false. */
export type Level = string | number | false;

const NAMES = Object.keys(THRESHOLDS);
const LEVEL = { enum: [...NAMES, ...NAMES.map((name) => name.toUpperCase()), false] };
const PYTHON_LEVEL = { anyOf: [{ enum: [...LEVEL.enum, 'NOTSET'] }, { type: 'integer', minimum: 0 }] };
const FORMAT = { enum: ['text', 'json'] };
const TEXT = { type: 'string', minLength: 1 };
const COUNT = { type: 'integer', minimum: 1 };
const COUNT_OR_NONE = { type: 'integer', minimum: 0 };

/** Returns undefined for `NOTSET` and 0, which leave the decision to the logger above. */
export function thresholdOf(level: Level | undefined): LogThreshold | undefined {
  if (level === undefined || level === 0 || level === 'NOTSET') return undefined;
  if (level === false) return 'off';
  if (typeof level === 'number') return level <= 10 ? 'debug' : level <= 20 ? 'info' : level <= 30 ? 'warn' : 'error';
  return new Map<string, LogThreshold>(Object.entries(THRESHOLDS)).get(level.toLowerCase());
}

export interface OwnForm {
  readonly level?: Level;
  readonly format?: LogFormat;
  readonly loggers?: Readonly<Record<string, Level>>;
  readonly destinations?: readonly OwnDestination[];
}

export interface OwnDestination {
  readonly console?: 'stderr' | 'stdout';
  readonly file?: string;
  readonly level?: Level;
  readonly format?: LogFormat;
  readonly 'max-bytes'?: number;
  readonly keep?: number;
}

export const OWN_FORM: JsonObject = {
  type: 'object',
  additionalProperties: false,
  properties: {
    level: LEVEL,
    format: FORMAT,
    loggers: { type: 'object', additionalProperties: LEVEL },
    destinations: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        properties: {
          console: { enum: ['stderr', 'stdout'] },
          file: TEXT,
          level: LEVEL,
          format: FORMAT,
          'max-bytes': COUNT,
          keep: COUNT,
        },
        oneOf: [{ required: ['console'] }, { required: ['file'] }],
        dependentRequired: { 'max-bytes': ['file'], keep: ['file'] },
      },
    },
  },
};

/** The supported part of Python's `logging.config`. */
export interface PythonForm {
  readonly root?: PythonLogger;
  readonly loggers?: Readonly<Record<string, PythonLogger>>;
  readonly handlers?: Readonly<Record<string, PythonHandler>>;
  readonly formatters?: Readonly<Record<string, PythonFormatter>>;
}

export interface PythonFormatter {
  readonly class?: string;
  readonly '()'?: string;
  readonly format?: JsonValue;
  readonly datefmt?: JsonValue;
  readonly style?: JsonValue;
}

export interface PythonLogger {
  readonly level?: Level;
  readonly handlers?: readonly string[];
  readonly propagate?: JsonValue;
}

export interface PythonHandler {
  readonly class: string;
  readonly level?: Level;
  readonly formatter?: JsonValue;
  readonly stream?: JsonValue;
  /** Set for the classes of `FILE_HANDLERS`. */
  readonly filename?: string;
  readonly maxBytes?: number;
  readonly backupCount?: number;
  readonly when?: string;
  readonly interval?: number;
  readonly utc?: boolean;
  readonly atTime?: JsonValue;
}

const FILE_HANDLERS: readonly string[] = [
  'logging.FileHandler',
  'logging.handlers.RotatingFileHandler',
  'logging.handlers.TimedRotatingFileHandler',
  'logging.handlers.WatchedFileHandler',
];

const PYTHON_LOGGER = {
  type: 'object',
  properties: { level: PYTHON_LEVEL, handlers: { type: 'array', items: { type: 'string' } } },
};

/** Source: the Python library reference, "Configuration dictionary schema" and "Logging Levels". */
export const PYTHON_FORM: JsonObject = {
  type: 'object',
  properties: {
    version: { const: 1 },
    root: PYTHON_LOGGER,
    loggers: { type: 'object', additionalProperties: PYTHON_LOGGER },
    formatters: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { class: TEXT, '()': TEXT } },
    },
    handlers: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        required: ['class'],
        properties: {
          class: TEXT,
          level: PYTHON_LEVEL,
          filename: TEXT,
          maxBytes: COUNT_OR_NONE,
          backupCount: COUNT_OR_NONE,
          when: TEXT,
          interval: COUNT,
          utc: { type: 'boolean' },
        },
        if: { properties: { class: { enum: FILE_HANDLERS } } },
        then: { properties: { filename: TEXT }, required: ['filename'] },
      },
    },
  },
};
