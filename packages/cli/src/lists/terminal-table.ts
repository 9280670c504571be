/** Formats a list as a table that fits a terminal. */

import { printable } from '@nodepool/core';
import { cellText, characterWidth, displayWidth, type RecordList } from '@nodepool/store';
import { paint, type Display } from '../display.js';

/** A column is not narrowed below this width (characters). */
const MIN_WIDTH = 10;
const ELLIPSIS = '…';

export interface TableForm {
  /** True for borders as MySQL's client draws them, if the display has room; spaces separate the columns otherwise. */
  readonly borders: boolean;
  /** Fields that are never narrowed. */
  readonly fixed: readonly string[];
}

type Column = RecordList['columns'][number];

/**
 * Returns the list as a table without a final line break. If the table is wider than the display, its widest columns
 * are narrowed. Without borders, a terminal omits columns without values and the last columns if they do not fit.
 */
export function terminalTable(list: RecordList, { borders, fixed }: TableForm, display: Display): string {
  const texts = list.rows.map((row) =>
    list.columns.map((column, index) =>
      textOf(column, row[index] ?? null, { borders, onTerminal: display.size !== undefined }),
    ),
  );
  const filled = [...list.columns.keys()].filter(
    (index) => borders || display.size === undefined || texts.length === 0 || texts.some((row) => row[index] !== ''),
  );
  const headers = list.columns.map(({ header }) => (borders ? header : header.toUpperCase()));
  const columns = filled.map((index) => ({
    index,
    width: texts.reduce(
      (width, row) => Math.max(width, displayWidth(row[index] ?? '')),
      displayWidth(headers[index] ?? ''),
    ),
    isFixed: fixed.includes(list.columns[index]?.field ?? ''),
  }));
  if (display.size !== undefined) {
    const available = display.size.columns;
    if (borders && leastWidth(columns, borders) > available)
      return terminalTable(list, { borders: false, fixed }, display);
    fit(columns, borders, available);
  }
  const shown = columns.map(({ index }) => index);
  const widths = columns.map(({ width }) => width);
  const cells = (row: readonly string[], color: boolean): string[] =>
    shown.map((index, place) => {
      const text = shorten(row[index] ?? '', widths[place] ?? 0);
      const padding = ' '.repeat(Math.max(0, (widths[place] ?? 0) - displayWidth(text)));
      return `${color && list.columns[index]?.field === 'state' ? paint(text, row[index] ?? '') : text}${padding}`;
    });
  if (!borders) return plainLines(headers, texts, cells, display).join('\n');
  const border = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
  const body = texts.map((row) => line(cells(row, display.color)));
  return [border, line(cells(headers, false)), border, ...body, border].join('\n');
}

function plainLines(
  headers: readonly string[],
  texts: readonly (readonly string[])[],
  cells: (row: readonly string[], color: boolean) => string[],
  { size, color }: Display,
): readonly string[] {
  const line = (row: readonly string[], painted: boolean): string => {
    const plain = cells(row, false).join('  ').trimEnd();
    // A line that is still too wide is truncated, without its colors.
    if (size !== undefined && displayWidth(plain) > size.columns) return shorten(plain, size.columns);
    return painted ? cells(row, true).join('  ').trimEnd() : plain;
  };
  return [line(headers, false), ...texts.map((row) => line(row, color))];
}

/** Repeated elements of arrays are folded, except in the table with borders for other programs. */
function textOf(
  column: Column,
  value: RecordList['rows'][number][number],
  { borders, onTerminal }: { readonly borders: boolean; readonly onTerminal: boolean },
): string {
  if (Array.isArray(value) && (!borders || (onTerminal && new Set(value).size < value.length)))
    return printable(foldRepeats(value.map(cellText)));
  return printable(column.text === undefined ? cellText(value) : column.text(value));
}

/** Joins texts; a text that occurs several times is shown once with its number: `debian ×18, ubuntu`. */
export function foldRepeats(texts: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([text, count]) => (count === 1 ? text : `${text} ×${count}`)).join(', ');
}

interface ColumnWidth {
  readonly index: number;
  width: number;
  readonly isFixed: boolean;
}

/** Returns the width of the table with all columns narrowed. */
function leastWidth(columns: readonly ColumnWidth[], borders: boolean): number {
  return columns.reduce(
    (sum, { isFixed, width }) => sum + (isFixed ? width : Math.min(width, MIN_WIDTH)),
    separatorsWidth(columns.length, borders),
  );
}

function separatorsWidth(columns: number, borders: boolean): number {
  return borders ? 3 * columns + 1 : 2 * (columns - 1);
}

/** Narrows the widest columns that are not fixed until all fit; without borders, first removes the last ones. */
function fit(columns: ColumnWidth[], borders: boolean, available: number): void {
  while (!borders && leastWidth(columns, borders) > available) {
    const last = columns.findLastIndex(({ isFixed }) => !isFixed);
    if (last < 0) break;
    columns.splice(last, 1);
  }
  const width = columns.reduce((sum, column) => sum + column.width, separatorsWidth(columns.length, borders));
  for (let excess = width - available; excess > 0; excess -= 1) {
    const widest = columns.reduce<ColumnWidth | undefined>(
      (found, column) => (!column.isFixed && column.width > Math.max(MIN_WIDTH, found?.width ?? 0) ? column : found),
      undefined,
    );
    if (widest === undefined) return;
    widest.width -= 1;
  }
}

/** Returns the text, cut with an ellipsis if it is wider. */
export function shorten(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const character of text) {
    left -= characterWidth(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}${ELLIPSIS}`;
}
