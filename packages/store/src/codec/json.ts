/**
 * JSON objects as the texts of their members, so that a record can be written back with some members changed and all
 * others verbatim. Parsing and printing would lose precision: requestors store 64 and 128 bit integers (tracing ids),
 * which a JavaScript number cannot represent.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Returns the text of an object that `JSON.parse` has accepted, with these members set or, if undefined, removed.
 * Further members follow at the end. Returns `text` itself if it has all these values.
 */
export function withMembers(text: string, changes: ReadonlyMap<string, string | undefined>): string {
  const changed: MemberChange[] = [];
  changes.forEach((value, name) => changed.push({ literal: quoted(name), value, found: false }));
  /** Runs of unchanged members, verbatim, and changed members between them. */
  const parts: string[] = [];
  let runStart = -1;
  let runEnd = -1;
  const endRun = (): void => {
    if (runStart >= 0) parts.push(text.slice(runStart, runEnd));
    runStart = -1;
  };
  // Other programs may escape any character of a name.
  const hasEscapes = text.includes('\\');
  let isSame = true;
  let at = skipSpace(text, text.indexOf('{') + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACE) {
    const nameEnd = endOfString(text, at);
    const start = skipSpace(text, text.indexOf(':', nameEnd) + 1);
    const end = endOfValue(text, start);
    const change = changeOf(changed, text, at, nameEnd, hasEscapes);
    if (change === undefined || isAt(text, start, end, change.value)) {
      if (runStart < 0) runStart = at;
      runEnd = end;
    } else {
      isSame = false;
      endRun();
      if (change.value !== undefined && !change.found) parts.push(`${change.literal}: ${change.value}`);
    }
    if (change !== undefined) change.found = true;
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  endRun();
  changed.forEach(({ literal, value, found }) => {
    if (found || value === undefined) return;
    isSame = false;
    parts.push(`${literal}: ${value}`);
  });
  return isSame ? text : `{${parts.join(', ')}}`;
}

interface MemberChange {
  /** The name as a JSON string. */
  readonly literal: string;
  readonly value: string | undefined;
  found: boolean;
}

/** Returns the change of the member whose name is at this place of the text. */
function changeOf(
  changed: readonly MemberChange[],
  text: string,
  from: number,
  to: number,
  mayBeEscaped: boolean,
): MemberChange | undefined {
  const change = changed.find(({ literal }) => isAt(text, from, to, literal));
  if (change !== undefined || !mayBeEscaped) return change;
  const name = text.slice(from, to);
  return name.includes('\\') ? changed.find(({ literal }) => JSON.parse(name) === JSON.parse(literal)) : undefined;
}

function isAt(text: string, from: number, to: number, part: string | undefined): boolean {
  return part !== undefined && part.length === to - from && text.startsWith(part, from);
}

/** Returns a member of an object as text, spaced as the other programs do. `value` is JSON text. */
export function memberText(name: string, value: string): string {
  return `${quoted(name)}: ${value}`;
}

/** Returns the object with these members as text. */
export function objectText(members: readonly string[]): string {
  return `{${members.join(', ')}}`;
}

/** Names that need no escapes, for which the slower quoting is skipped. */
const PLAIN_NAME = /^[\w-]*$/;

function quoted(name: string): string {
  return PLAIN_NAME.test(name) ? `"${name}"` : JSON.stringify(name);
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** Returns the index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
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
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (code === COMMA || isSpace(code))) return at;
    at += 1;
  }
  return at;
}
