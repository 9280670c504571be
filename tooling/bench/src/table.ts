/** A table for a terminal. */

export interface Row {
  readonly what: string;
  readonly measured: string;
  readonly target: string;
  /** Value of the existing implementation; `-` if not measured. */
  readonly existing: string;
  /** True if the target is met; undefined without a target. */
  readonly met: boolean | undefined;
  /** Load average of the machine over the last minute of the measurement. Default `-`. */
  readonly load?: string;
}

const HEADINGS = ['measurement', 'measured', 'target', 'existing', 'load', ''] as const;

/** Renders the rows with headings in columns; the first column is left-aligned. */
export function renderTable(rows: readonly Row[]): string {
  const lines = [
    HEADINGS,
    ...rows.map(
      (row) => [row.what, row.measured, row.target, row.existing, row.load ?? '-', verdict(row.met)] as const,
    ),
  ];
  const widths = HEADINGS.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]): string =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  const rule = '-'.repeat(widths.reduce((sum, width) => sum + width + 2, -2));
  return [render(lines[0] ?? []), rule, ...lines.slice(1).map(render)].join('\n');
}

function verdict(met: boolean | undefined): string {
  if (met === undefined) return '';
  return met ? 'met' : 'MISSED';
}
