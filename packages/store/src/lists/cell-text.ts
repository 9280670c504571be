import type { JsonValue } from '@nodepool/core';

/** Returns the text of a cell: lists joined with commas, null as an empty cell, structures as JSON. */
export function cellText(value: JsonValue): string {
  if (value === null) return '';
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(cellText).join(',');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const ASCII = /^[\x20-\x7e]*$/;
const COMBINING = /[\p{Mn}\p{Me}]/u;
/** Characters of two columns: East Asian scripts, their punctuation and full-width forms, and pictures. */
const WIDE =
  /[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{17000}-\u{18cff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]/u;

/** Returns the number of columns that a printable text takes on a terminal. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Returns the columns of one character (one code point). */
export function characterWidth(character: string): number {
  if (COMBINING.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}
