/**
 * JSON objects as the texts of their members, so that a record can be written back with some members changed and all
 * others verbatim. Parsing and printing would lose precision: requestors store 64 and 128 bit integers (tracing ids),
 * which a JavaScript number cannot represent.
 */

/** JSON text of each member by name, in the order of the object. */
export type JsonMembers = Map<string, string>;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Splits the text of an object that `JSON.parse` has accepted. A repeated name has its last value, as in `JSON.parse`.
 */
export function membersOf(text: string): JsonMembers {
  const members: JsonMembers = new Map();
  let at = skipSpace(text, text.indexOf('{') + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACE) {
    const nameEnd = endOfString(text, at);
    const start = skipSpace(text, text.indexOf(':', nameEnd) + 1);
    const end = endOfValue(text, start);
    members.set(nameOf(text.slice(at, nameEnd)), text.slice(start, end));
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return members;
}

/** Returns the object as text, spaced as the other programs do. */
export function textOf(members: JsonMembers): string {
  const texts: string[] = [];
  for (const [name, value] of members) texts.push(`${quoted(name)}: ${value}`);
  return `{${texts.join(', ')}}`;
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

/** Returns the value of a JSON string literal. */
function nameOf(json: string): string {
  return json.includes('\\') ? String(JSON.parse(json)) : json.slice(1, -1);
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
