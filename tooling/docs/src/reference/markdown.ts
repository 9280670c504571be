/** Writes Markdown in the format of prettier. */

/** Returns a table. Cells must not contain line breaks; characters that would end a cell are escaped. */
export function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [headers, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')));
  const widths = headers.map((_, column) => Math.max(3, ...cells.map((row) => width(row[column] ?? ''))));
  const line = (row: readonly string[]): string =>
    `| ${widths.map((most, column) => pad(row[column] ?? '', most)).join(' | ')} |`;
  const [head = [], ...body] = cells;
  return [line(head), `| ${widths.map((most) => '-'.repeat(most)).join(' | ')} |`, ...body.map(line)].join('\n');
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** Returns a block of preformatted text, e.g. of a terminal. */
export function block(text: string): string {
  return `\`\`\`text\n${text.trimEnd()}\n\`\`\``;
}

/** Escapes angle brackets outside of code, which would be HTML. */
export function prose(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '\\<').replaceAll('*', '\\*') : part))
    .join('');
}

function pad(text: string, most: number): string {
  return text + ' '.repeat(Math.max(0, most - width(text)));
}

/** Counts characters, not UTF-16 units. */
function width(text: string): number {
  return Array.from(text).length;
}
