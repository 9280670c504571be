/** Formats a list as a table that fits a terminal. */

import { cellText, characterWidth, displayWidth, printable, type RecordList } from '@nodepool/store';
import { paint, type Display } from '../display.js';

/** A column is not narrowed below this width (characters). */
const MIN_WIDTH = 10;
const ELLIPSIS = '…';

export interface TableForm {
  /** True for borders as MySQL's client draws them; spaces separate the columns otherwise. */
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
    list.columns.map((column, index) => textOf(column, row[index] ?? null, borders)),
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
  if (display.size !== undefined) fit(columns, borders, display.size.columns);
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

function textOf(column: Column, value: RecordList['rows'][number][number], borders: boolean): string {
  if (column.text !== undefined) return printable(column.text(value));
  if (!borders && Array.isArray(value)) return printable(foldRepeats(value.map(cellText)));
  return printable(cellText(value));
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

/** Narrows the widest columns that are not fixed until all fit; without borders, first removes the last ones. */
function fit(columns: ColumnWidth[], borders: boolean, available: number): void {
  const total = (widthOf: (column: ColumnWidth) => number): number =>
    columns.reduce((sum, column) => sum + widthOf(column), borders ? 3 * columns.length + 1 : 2 * (columns.length - 1));
  const least = ({ isFixed, width }: ColumnWidth): number => (isFixed ? width : Math.min(width, MIN_WIDTH));
  while (!borders && total(least) > available) {
    const last = columns.findLastIndex(({ isFixed }) => !isFixed);
    if (last < 0) break;
    columns.splice(last, 1);
  }
  for (let excess = total(({ width }) => width) - available; excess > 0; excess -= 1) {
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
