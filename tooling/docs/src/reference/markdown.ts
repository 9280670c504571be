/** Writes Markdown in the format of prettier. */

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
