/** Filters and sorts the rows of a list, and chooses its columns. */

import { didYouMean } from '@nodepool/config';
import type { JsonValue } from '@nodepool/core';
import { cellText, type RecordList } from '@nodepool/store';
import { UsageError } from '../command-context.js';

/** A condition `FIELD=VALUE[,VALUE…]` or `FIELD!=VALUE[,VALUE…]`; values may contain `*`. */
export interface Filter {
  readonly field: string;
  readonly negated: boolean;
  readonly patterns: readonly string[];
}

export interface Selection {
  /** Conditions that all hold. */
  readonly filters: readonly Filter[];
  /** Fields to sort by; a leading `-` reverses the order. */
  readonly sort: readonly string[];
}

type Column = RecordList['columns'][number];
type Row = RecordList['rows'][number];

/** Returns the condition. Throws `UsageError`. */
export function parseFilter(text: string): Filter {
  const [, field, sign, values] = /^([^=!]+)(!?=)(.*)$/s.exec(text) ?? [];
  if (field === undefined || values === undefined) {
    throw new UsageError(`--filter ${JSON.stringify(text)}: expected FIELD=VALUE or FIELD!=VALUE, such as state=ready`);
  }
  return { field: field.trim(), negated: sign === '!=', patterns: values.split(',') };
}

/** Returns the matching rows, sorted. Throws `UsageError` for a missing field or a pattern that cannot match. */
export function select(list: RecordList, { filters, sort }: Selection): RecordList {
  const tests = filters.map((filter) => testOf(list, filter));
  const rows = list.rows.filter((row) => tests.every((test) => test(row)));
  const orders = sort.map((field) => orderOf(list, field));
  rows.sort((a, b) => {
    for (const order of orders) {
      const difference = order(a, b);
      if (difference !== 0) return difference;
    }
    return 0;
  });
  return { columns: list.columns, rows };
}

/** Returns the list with these columns, in this order. Throws `UsageError` if the list does not have a field. */
export function chooseFields(list: RecordList, fields: readonly string[]): RecordList {
  const indexes = fields.map((field) => indexOf(list, field));
  return {
    columns: indexes.flatMap((index) => list.columns[index] ?? []),
    rows: list.rows.map((row) => indexes.map((index) => row[index] ?? null)),
  };
}

function indexOf({ columns }: RecordList, field: string): number {
  const index = columns.findIndex((column) => column.field === field);
  if (index >= 0) return index;
  const known = columns.map((column) => column.field);
  const suggestion = didYouMean(field, known) ?? `there are: ${known.join(', ')}`;
  throw new UsageError(`there is no field ${JSON.stringify(field.slice(0, 60))} in this list; ${suggestion}`);
}

function testOf(list: RecordList, { field, negated, patterns }: Filter): (row: Row) => boolean {
  const index = indexOf(list, field);
  const column = list.columns[index];
  if (column !== undefined) checkPatterns(column, patterns);
  const expressions = patterns.map(expressionOf);
  const matches = (text: string): boolean => expressions.some((expression) => expression.test(text));
  return (row) => textsOf(row[index] ?? null, column).some(matches) !== negated;
}

/** Throws `UsageError` for a pattern that matches no value of the column. An empty one beside others is ignored. */
function checkPatterns({ field, values }: Column, patterns: readonly string[]): void {
  if (values === undefined) return;
  const wrong = patterns.find((pattern) => {
    const expression = expressionOf(pattern);
    return (pattern.trim() !== '' || patterns.length === 1) && !values.some((value) => expression.test(value));
  });
  if (wrong === undefined) return;
  const known = values.filter((value) => value !== '').join(', ');
  const pattern = JSON.stringify(wrong.slice(0, 60));
  throw new UsageError(`no value of the field ${JSON.stringify(field)} matches ${pattern}; the values are: ${known}`);
}

function expressionOf(pattern: string): RegExp {
  return new RegExp(`^${pattern.trim().split('*').map(escaped).join('.*')}$`, 'is');
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** Returns the texts that a condition compares: the elements of an array, and the text of the table. */
function textsOf(value: JsonValue, column: Column | undefined): readonly string[] {
  if (Array.isArray(value)) return value.length === 0 ? [''] : value.map(cellText);
  const text = cellText(value);
  const shown = column?.text?.(value);
  return shown === undefined || shown === text ? [text] : [text, shown];
}

function orderOf(list: RecordList, sort: string): (a: Row, b: Row) => number {
  const reversed = sort.startsWith('-');
  const index = indexOf(list, reversed ? sort.slice(1) : sort);
  const column = list.columns[index];
  const collator = new Intl.Collator('en', { numeric: true });
  return (a, b) => {
    const difference = compareValues(a[index] ?? null, b[index] ?? null, column, collator);
    return reversed ? -difference : difference;
  };
}

function compareValues(a: JsonValue, b: JsonValue, column: Column | undefined, collator: Intl.Collator): number {
  if (column?.order === undefined) return collator.compare(cellText(a), cellText(b));
  // `Infinity - Infinity` is not a number.
  const [left, right] = [column.order(a) ?? Infinity, column.order(b) ?? Infinity];
  return left === right ? 0 : left - right;
}
