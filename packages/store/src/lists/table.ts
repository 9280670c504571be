/** Formats a list as the text table of MySQL's client: borders of `+`, `-` and `|`, cells aligned to the left. */

import { printable } from '@nodepool/core';
import { cellText, displayWidth } from './cell-text.js';
import type { RecordList } from './record-list.js';

/** Returns the list as a table, without a final line break. An empty list has headers and the borders of both parts. */
export function toTable(listing: RecordList): string {
  const cells = listing.rows.map((row) =>
    listing.columns.map((column, index) => {
      const value = row[index] ?? null;
      return printable(column.text === undefined ? cellText(value) : column.text(value));
    }),
  );
  const widths = listing.columns.map((column) => displayWidth(column.header));
  for (const row of cells) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, displayWidth(cell));
  }
  const border = `+${widths.map((columns) => '-'.repeat(columns + 2)).join('+')}+`;
  const line = (row: readonly string[]): string =>
    `|${row.map((cell, index) => ` ${cell}${' '.repeat((widths[index] ?? 0) - displayWidth(cell))} `).join('|')}|`;
  const lines = [border, line(listing.columns.map((column) => column.header)), border, ...cells.map(line)];
  lines.push(border);
  return lines.join('\n');
}
