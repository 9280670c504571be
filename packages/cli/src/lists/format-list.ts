import { createRequire } from 'node:module';
import { printable, type JsonValue } from '@nodepool/core';
import { cellText, toJsonObjects, toTable, type RecordList } from '@nodepool/store';
import type * as Yaml from 'yaml';
import type { ListFormat } from '../command-context.js';
import type { Display } from '../display.js';
import { terminalTable } from './terminal-table.js';

const load = createRequire(__filename);

/** Columns that are never truncated on a narrow terminal, in addition to the first column. */
const NEVER_NARROWED = ['state', 'age', 'locked'];

/** Returns the text of a list. `names`: the name of each row, by default the value of its first column. */
export function formatList(
  list: RecordList,
  format: ListFormat,
  display: Display,
  names: readonly string[] = namesOf(list, []),
): string {
  const fixed = [...list.columns.slice(0, 1).map(({ field }) => field), ...NEVER_NARROWED];
  switch (format) {
    case 'pretty':
      if (display.size === undefined && !display.color) return toTable(list);
      return terminalTable(list, { borders: true, fixed }, display);
    case 'wide':
      return terminalTable(list, { borders: false, fixed }, display);
    case 'name':
      return names.map(printable).join('\n');
    case 'json':
    case 'yaml':
      return formatData(toJsonObjects(list), format);
  }
}

/** Returns the name of each row: the values of these fields joined with `/`, or of the first column without fields. */
export function namesOf({ columns, rows }: RecordList, fields: readonly string[]): readonly string[] {
  const indexes = fields.length === 0 ? [0] : fields.map((name) => columns.findIndex(({ field }) => field === name));
  return rows.map((row) => indexes.map((index) => cellText(row[index] ?? null)).join('/'));
}

const UNPRINTABLE = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns a value as JSON or YAML, without characters that control a terminal. */
export function formatData(value: JsonValue | object, format: 'json' | 'yaml'): string {
  return escapeUnprintable(format === 'json' ? JSON.stringify(value, undefined, 2) : yamlOf(value));
}

/** Returns YAML in which every text with an unprintable character has double quotes. */
function yamlOf(value: JsonValue | object): string {
  const { Document, visit } = load('yaml') as typeof Yaml;
  // With version 1.1, the library quotes texts that PyYAML would read as a boolean or a number.
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_key, scalar) => {
      if (typeof scalar.value === 'string' && scalar.value.search(UNPRINTABLE) >= 0) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 }).trimEnd();
}

export function jsonLine(value: object): string {
  return escapeUnprintable(JSON.stringify(value));
}

/** Replaces characters by escapes, which mean the same in a text with double quotes. */
function escapeUnprintable(data: string): string {
  return data.replace(UNPRINTABLE, (character) =>
    Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
