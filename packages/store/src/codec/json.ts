/**
 * JSON objects as the texts of their members, so that a record can be written back with some members changed and all
 * others verbatim. Parsing and printing would lose precision: requestors store 64 and 128 bit integers (tracing ids),
 * which a JavaScript number cannot represent.
 */

/** The highest of the characters between the tokens of valid JSON. */
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** A member to set, or to remove if `value` is undefined. */
export interface MemberChange {
  /** The name as a JSON string. */
  readonly literal: string;
  readonly value: string | undefined;
  /** Set by `withMembers`: true if the object has the member. */
  found: boolean;
}

/**
 * Returns the text of an object that `JSON.parse` has accepted, with changed members, which are known by their names as
 * JSON strings. Further members follow at the end. Returns `text` itself if it has all these values.
 */
export function withMembers(text: string, changes: ReadonlyMap<string, MemberChange>): string {
  /** Runs of unchanged members, verbatim, and changed members between them. */
  const parts: string[] = [];
  let runStart = -1;
  let runEnd = -1;
  // Other programs may escape any character of a name.
  const hasEscapes = text.includes('\\');
  let isSame = true;
  // Every write of a record scans all its members, so this loop calls as few functions as possible.
  let at = text.indexOf('"');
  while (at !== -1) {
    const nameEnd = hasEscapes ? endOfString(text, at) : text.indexOf('"', at + 1) + 1;
    let start = text.indexOf(':', nameEnd) + 1;
    let first = text.charCodeAt(start);
    while (first <= SPACE) {
      start += 1;
      first = text.charCodeAt(start);
    }
    const end = first === QUOTE && !hasEscapes ? text.indexOf('"', start + 1) + 1 : endOfValue(text, start);
    const name = text.slice(at, nameEnd);
    const change = changes.get(hasEscapes ? withoutEscapes(name) : name);
    const value = change?.value;
    if (change === undefined || (value?.length === end - start && text.startsWith(value, start))) {
      if (runStart < 0) runStart = at;
      runEnd = end;
    } else {
      isSame = false;
      if (runStart >= 0) parts.push(text.slice(runStart, runEnd));
      runStart = -1;
      if (value !== undefined && !change.found) parts.push(memberText(change.literal, value));
    }
    if (change !== undefined) change.found = true;
    at = text.indexOf('"', end);
  }
  if (runStart >= 0) parts.push(text.slice(runStart, runEnd));
  changes.forEach(({ literal, value, found }) => {
    if (found || value === undefined) return;
    isSame = false;
    parts.push(memberText(literal, value));
  });
  return isSame ? text : objectText(parts);
}

/** Returns a JSON string as `JSON.stringify` writes it. */
function withoutEscapes(literal: string): string {
  return literal.includes('\\') ? JSON.stringify(JSON.parse(literal)) : literal;
}

/** Returns what `JSON.stringify` does, faster for the many fields of a record that are null. */
export function jsonText(value: unknown): string {
  return value === null ? 'null' : JSON.stringify(value);
}

/** Returns a member of an object as text, spaced as the other programs do. Both parts are JSON text. */
export function memberText(literal: string, value: string): string {
  return `${literal}: ${value}`;
}

/** Returns the object with these members as text. */
export function objectText(members: readonly string[]): string {
  return `{${members.join(', ')}}`;
}

/** Returns the index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end + 1;
}

/** Returns true if an odd number of backslashes precedes. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text.charCodeAt(start - 1) === BACKSLASH) start -= 1;
  return (at - start) % 2 === 1;
}

/** Returns the index after the value that begins at `start`. */
function endOfValue(text: string, start: number): number {
  switch (text.charCodeAt(start)) {
    case QUOTE:
      return endOfString(text, start);
    case OPEN_BRACE:
    case OPEN_BRACKET:
      return endOfNested(text, start);
    default:
      return endOfScalar(text, start);
  }
}

/** Returns the index after the object or list that begins at `start`. */
function endOfNested(text: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    at += 1;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return at;
}

/** Returns the index after the number, `true`, `false` or `null` that begins at `start`, a member of the object. */
function endOfScalar(text: string, start: number): number {
  const comma = text.indexOf(',', start);
  let end = comma === -1 ? text.lastIndexOf('}') : comma;
  while (text.charCodeAt(end - 1) <= SPACE) end -= 1;
  return end;
}
