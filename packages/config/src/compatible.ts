/** Finds the keys of a valid configuration that the Python Nodepool does not know. */

import { DEFAULT_DRIVER, isJsonObject, stringAt, type Driver, type JsonObject, type JsonValue } from '@nodepool/core';
import type { ConfigDocument } from './document.js';
import type { ConfigProblem, KeyPath } from './problems.js';
import { ProblemReport } from './report.js';
import { configSchema } from './schema.js';

const EXPECTED_KEY = 'a key that the Python Nodepool knows';
const EXPECTED_DRIVER = 'a driver that the Python Nodepool has';

/**
 * Returns a problem for each key whose schema has `compatible: false`, and for each driver whose schema lacks
 * `compatible: true`. Providers whose driver was not loaded are skipped.
 */
export function incompatibleKeys(document: ConfigDocument, drivers: ReadonlyMap<string, Driver>): ConfigProblem[] {
  const report = new ProblemReport();
  const onKey = (path: KeyPath): void =>
    report.at(document, path, { expected: EXPECTED_KEY, found: 'a new key', at: 'key' });
  visit(document.value, configSchema, [], onKey);
  const root = isJsonObject(document.value) ? document.value : {};
  for (const [index, section] of itemsOf(root['providers']).entries()) {
    if (!isJsonObject(section)) continue;
    const name = stringAt(section, 'driver') ?? DEFAULT_DRIVER;
    const driver = drivers.get(name);
    if (driver === undefined) continue;
    const path = ['providers', index];
    if (driver.schema['compatible'] === true && driver.name === name) visit(section, driver.schema, path, onKey);
    else report.at(document, [...path, 'driver'], { expected: EXPECTED_DRIVER });
  }
  return report.list();
}

function visit(value: JsonValue, schema: JsonObject, path: KeyPath, onKey: (path: KeyPath) => void): void {
  for (const part of partsOf(schema)) {
    const { items, properties } = part;
    if (Array.isArray(value) && isJsonObject(items)) {
      for (const [index, item] of itemsOf(value).entries()) visit(item, items, [...path, index], onKey);
    }
    if (!isJsonObject(value) || !isJsonObject(properties)) continue;
    for (const [key, below] of Object.entries(value)) {
      const known = properties[key];
      if (!isJsonObject(known)) continue;
      if (known['compatible'] === false) onKey([...path, key]);
      else visit(below, known, [...path, key], onKey);
    }
  }
}

function partsOf(schema: JsonObject): readonly JsonObject[] {
  const alternatives = [schema['anyOf'], schema['oneOf']].flatMap((each) => itemsOf(each).filter(isJsonObject));
  return [schema, ...alternatives];
}

function itemsOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}
