/** Keys without a value (`port:`), which YAML reads like `null`. */

import { isJsonObject, type JsonSchema, type JsonValue } from '@nodepool/core';
import type { ConfigDocument } from './document.js';
import type { KeyPath } from './problems.js';
import type { ProblemReport } from './report.js';
import { describeSchema } from './schema-words.js';

/**
 * Reports numbers that have no value: they would silently mean the default, or no limit. A number that is written as
 * `null` counts as absent, as in files of the Python Nodepool.
 */
export function checkEmptyNumbers(
  document: ConfigDocument,
  schema: JsonSchema,
  path: KeyPath,
  report: ProblemReport,
): void {
  const value = document.valueAt(path);
  if (value === null && isNumeric(schema)) checkWritten(document, path, describeSchema(schema), report);
  else if (Array.isArray(value)) {
    const items = schemaAt(schema, 'items');
    if (items === undefined) return;
    for (const index of value.keys()) checkEmptyNumbers(document, items, [...path, index], report);
  } else if (isJsonObject(value)) {
    const properties = schemaAt(schema, 'properties') ?? {};
    for (const key of Object.keys(value)) {
      const property = schemaAt(properties, key) ?? schemaAt(schema, 'additionalProperties');
      if (property !== undefined) checkEmptyNumbers(document, property, [...path, key], report);
    }
  }
}

/** Reports a value that is not written, e.g. `host:`. */
export function checkWritten(document: ConfigDocument, path: KeyPath, expected: string, report: ProblemReport): void {
  if (document.valueAt(path) !== null || document.writtenAt(path) !== '') return;
  report.at(document, path, { expected, found: 'nothing', hint: 'write a value, or remove the key', at: 'key' });
}

function isNumeric({ type }: JsonSchema): boolean {
  const types: readonly (JsonValue | undefined)[] = Array.isArray(type) ? type : [type];
  return (
    types.includes('null') && (types.includes('integer') || types.includes('number')) && !types.includes('boolean')
  );
}

function schemaAt(schema: JsonSchema, key: string): JsonSchema | undefined {
  const inner = Object.hasOwn(schema, key) ? schema[key] : undefined;
  return isJsonObject(inner) ? inner : undefined;
}
