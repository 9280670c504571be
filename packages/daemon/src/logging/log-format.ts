/** The formats of a log line: text for operators, JSON for programs. */

import { isError, reasonOf, type LogFields } from '@nodepool/core';
import type { Logform } from 'winston';
import type { LogLevel } from './logging-config.js';

/** A line as passed by winston from the logger to the formats. */
export interface LogLine extends Logform.TransformableInfo {
  readonly level: LogLevel;
  readonly message: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** Name of the logger. */
  readonly logger: string;
  readonly fields: LogFields;
  /** The thrown value; undefined if there is none. */
  readonly error: unknown;
}

/** Level names of Python's logging, which log searches of existing installations use. */
const LEVEL_NAMES: Readonly<Record<LogLevel, string>> = {
  debug: 'DEBUG',
  info: 'INFO',
  warn: 'WARNING',
  error: 'ERROR',
};

/** Formats `2026-11-20 13:04:49,123 INFO nodepool.launcher: Message node_id=0000000001`, then reason and stack. */
export function textLine(line: LogLine): string {
  let text = `${localTime(line.time)} ${LEVEL_NAMES[line.level]} ${line.logger}: ${oneLine(line.message)}`;
  let separator = '  ';
  for (const key in line.fields) {
    const value = line.fields[key];
    if (value === undefined) continue;
    const isPlain = typeof value === 'string' && PLAIN_VALUE.test(value);
    text += `${separator}${key}=${isPlain ? value : textValue(value)}`;
    separator = ' ';
  }
  if (line.error === undefined) return text;
  // A search for lines finds the reason, not only the stack below it.
  const reason = line.fields['reason'] === undefined ? `${separator}reason=${textValue(reasonOf(line.error))}` : '';
  return `${text}${reason}\n${errorText(line.error)}`;
}

/**
 * Formats one JSON object: `time`, `level`, `logger`, `message`, the fields, `error`. A field with one of these names
 * gets a `_` appended to its name.
 */
export function jsonLine(line: LogLine): string {
  const object: Record<string, unknown> = {
    time: new Date(line.time).toISOString(),
    level: line.level,
    logger: line.logger,
    message: line.message,
  };
  const error = line.error === undefined ? undefined : errorObject(line.error);
  for (const key of Object.keys(line.fields)) {
    object[Object.hasOwn(object, key) || (key === 'error' && error !== undefined) ? `${key}_` : key] = line.fields[key];
  }
  if (error !== undefined) object['error'] = error;
  try {
    return JSON.stringify(object, jsonReplacer);
  } catch {
    // A field cannot be serialized; serializing each alone finds it.
    for (const key of Object.keys(object)) object[key] = JSON.parse(safeJson(object[key])) as unknown;
    return JSON.stringify(object);
  }
}

let lastSecond = -1;
let lastSecondText = '';

/** Formats local time as Python's logging does. The result is cached per second, because formatting a date is slow. */
function localTime(time: number): string {
  const second = Math.floor(time / 1000);
  if (second !== lastSecond) {
    const date = new Date(second * 1000);
    const day = `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`;
    lastSecondText = `${day} ${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`;
    lastSecond = second;
  }
  return `${lastSecondText},${String(Math.floor(time - second * 1000)).padStart(3, '0')}`;
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : String(value);
}

/** Text that needs no quotes, as most values. */
const PLAIN_VALUE = /^[^\s"=\p{Cc}]+$/u;

/** Returns the text of a value that is not plain. */
function textValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') return String(rounded(value));
  if (typeof value === 'boolean' || value === null) return String(value);
  return isError(value) ? JSON.stringify(`${value.name}: ${value.message}`) : safeJson(value);
}

/** Returns a number as people read it: with three decimals, or three digits if it is below 1. */
function rounded(value: number): number {
  if (Number.isInteger(value)) return value;
  return Number(Math.abs(value) < 1 ? value.toPrecision(3) : value.toFixed(3));
}

const CONTROL = /\p{Cc}/u;
const CONTROLS = /\p{Cc}/gu;

/** Escapes control characters such as line breaks, so that text from outside cannot add lines. */
function oneLine(message: string): string {
  return CONTROL.test(message)
    ? message.replace(CONTROLS, (character) => JSON.stringify(character).slice(1, -1))
    : message;
}

const MAX_CAUSES = 8;

/** Returns the stack of an error and of its causes, indented, so that lines of the log start with a time or a space. */
function errorText(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; current !== undefined && depth < MAX_CAUSES; depth += 1) {
    const text = isError(current) ? (current.stack ?? `${current.name}: ${current.message}`) : safeText(current);
    parts.push(`${depth === 0 ? '' : 'caused by '}${text}`);
    if (current instanceof AggregateError) {
      for (const inner of current.errors.slice(0, MAX_CAUSES)) parts.push(`one of ${safeText(inner)}`);
    }
    current = isError(current) ? current.cause : undefined;
  }
  return parts.join('\n').replace(/^/gm, '    ');
}

function errorObject(error: unknown, depth = 0): unknown {
  if (!isError(error)) return { message: safeText(error) };
  const object: Record<string, unknown> = { name: error.name, message: error.message };
  if ('code' in error) object['code'] = error.code;
  if (error.stack !== undefined) object['stack'] = error.stack;
  if (depth >= MAX_CAUSES) return object;
  if (error instanceof AggregateError) {
    object['errors'] = error.errors.slice(0, MAX_CAUSES).map((inner) => errorObject(inner, depth + 1));
  }
  if (error.cause !== undefined) object['cause'] = errorObject(error.cause, depth + 1);
  return object;
}

function safeText(value: unknown): string {
  if (isError(value)) return `${value.name}: ${value.message}`;
  return typeof value === 'string' ? value : safeJson(value);
}

/** Returns the JSON of any value; values that JSON cannot represent become text. Never throws. */
function safeJson(value: unknown): string {
  try {
    // Contrary to its type, `JSON.stringify` returns undefined for undefined and for functions.
    const json = JSON.stringify(value, jsonReplacer) as string | undefined;
    return json ?? JSON.stringify(String(value));
  } catch (error) {
    // Cycles, or getters and toJSON methods that throw.
    return JSON.stringify(`unprintable: ${reasonOf(error)}`);
  }
}

function jsonReplacer(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
  if (typeof value === 'number') return rounded(value);
  if (typeof value !== 'object' || value === null) return value;
  if (isError(value)) return `${value.name}: ${value.message}`;
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([key, entry]) => [String(key), entry as unknown]));
  return value instanceof Set ? [...(value as Set<unknown>)] : value;
}
