/**
 * Returns the text, or its beginning and its end around an ellipsis if it is longer than `length` characters: the end
 * of a message usually holds the cause.
 */
export function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const start = Math.ceil((length - 1) / 2);
  return `${text.slice(0, start)}…${text.slice(text.length - (length - 1 - start))}`;
}
