import { isError, type LogFields, type Logger } from '@nodepool/core';

/** Maximum depth of causes and of objects in fields. */
const MAX_DEPTH = 6;

/** Returns a logger that adds messages, fields, errors and causes to `texts`. */
export function recordingLogger(texts: string[], fixed: LogFields = {}): Logger {
  const log = (message: string, fields: LogFields = {}): void => {
    texts.push(message, ...textsIn({ ...fixed, ...fields }));
  };
  return {
    debug: log,
    info: log,
    warn: log,
    error: (message, error, fields) => log(message, { ...fields, error }),
    with: (fields) => recordingLogger(texts, { ...fixed, ...fields }),
    named: () => recordingLogger(texts, fixed),
  };
}

/** Returns all texts of a log line’s value: messages, stacks and causes of errors, and fields of objects. */
export function textsIn(value: unknown, depth = 0): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return [];
  const parts = isError(value) ? [value.message, value.stack, value.cause] : Object.values(value);
  return parts.flatMap((part: unknown) => textsIn(part, depth + 1));
}
