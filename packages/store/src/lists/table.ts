/** Formats a list as the text table of MySQL's client: borders of `+`, `-` and `|`, cells aligned to the left. */

import type { JsonValue } from '@nodepool/core';
import type { RecordList } from './record-list.js';

/**
 * Returns the list as a table, without a final line break. An empty list has the headers with the borders of both
 * parts.
 */
export function toTable(listing: RecordList): string {
  const cells = listing.rows.map((row) =>
    listing.columns.map((column, index) => {
      const value = row[index] ?? null;
      return printable(column.text === undefined ? cellText(value) : column.text(value));
    }),
  );
  const widths = listing.columns.map((column) => width(column.header));
  for (const row of cells) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width(cell));
  }
  const border = `+${widths.map((columns) => '-'.repeat(columns + 2)).join('+')}+`;
  const line = (row: readonly string[]): string =>
    `|${row.map((cell, index) => ` ${cell}${' '.repeat((widths[index] ?? 0) - width(cell))} `).join('|')}|`;
  const lines = [border, line(listing.columns.map((column) => column.header)), border, ...cells.map(line)];
  lines.push(border);
  return lines.join('\n');
}

/** Returns the text of a cell: lists joined with commas, null as an empty cell, structures as JSON. */
export function cellText(value: JsonValue): string {
  if (value === null) return '';
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(cellText).join(',');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Replaces characters that would break the table or control the terminal, since values may come from any source. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
  });
}

const ASCII = /^[\x20-\x7e]*$/;

/** Returns the number of characters, not of UTF-16 units. */
function width(text: string): number {
  return ASCII.test(text) ? text.length : Array.from(text).length;
}
