/**
 * JSON objects as the texts of their members, so that a record can be written back with some members changed and all
 * others verbatim. Parsing and printing would lose precision: requestors store 64 and 128 bit integers (tracing ids),
 * which a JavaScript number cannot represent.
 */

/** The highest of the characters between the tokens of valid JSON. */
const SPACE = 0x20;
const QUOTE = 0x22;
/** The first letter of `null`, and of no other value. */
const LETTER_N = 0x6e;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;

/** A string, from its first to its last quote. */
const STRING = /"(?:[^"\\]|\\.)*"/y;
/** The text up to the next bracket that is not part of a string. */
const BRACKET = /(?:[^"[\]{}]|"(?:[^"\\]|\\.)*")*[[\]{}]/y;

/** A member that the objects of a kind usually have. */
export interface Member {
  /** Its place among these members. */
  readonly index: number;
  /** The name as a JSON string. */
  readonly literal: string;
  /** The text before the value, spaced as the other programs do. */
  readonly start: string;
}

/** All members that the objects of a kind usually have: in the usual order, and by their names as JSON strings. */
export interface Members {
  readonly ordered: readonly Member[];
  readonly byLiteral: ReadonlyMap<string, Member>;
}

/** A member to set, or to remove if `value` is undefined. */
export interface MemberChange {
  readonly member: Member;
  readonly value: string | undefined;
  /** Set by `withMembers`: true if the object has the member. */
  found: boolean;
}

/**
 * Returns the text of an object that `JSON.parse` has accepted, with changed members. Further members follow at the
 * end. Returns `text` itself if it has all these values.
 */
export function withMembers(text: string, { ordered, byLiteral }: Members, changes: readonly MemberChange[]): string {
  // The loops have no iterators, which would allocate an object per step.
  const changeOf = new Array<MemberChange | undefined>(ordered.length);
  for (let index = 0; index < changes.length; index += 1) {
    const change = changes[index];
    if (change !== undefined) changeOf[change.member.index] = change;
  }
  /** Runs of unchanged members, verbatim, and changed members between them. */
  const parts: string[] = [];
  let runStart = -1;
  let runEnd = -1;
  // Other programs may escape any character of a name.
  const hasEscapes = text.includes('\\');
  let isSame = true;
  // A member that follows in the usual order is found without a copy of its name.
  let next = 0;
  // Every write of a record scans all its members, so this loop calls as few functions as possible.
  let at = text.indexOf('"');
  while (at !== -1) {
    let member = ordered[next];
    let start: number;
    if (member !== undefined && text.startsWith(member.start, at)) {
      start = at + member.start.length;
    } else {
      const nameEnd = hasEscapes ? endOfString(text, at) : text.indexOf('"', at + 1) + 1;
      const name = text.slice(at, nameEnd);
      member = byLiteral.get(hasEscapes ? withoutEscapes(name) : name);
      start = text.indexOf(':', nameEnd) + 1;
    }
    let change: MemberChange | undefined;
    if (member !== undefined) {
      next = member.index + 1;
      change = changeOf[member.index];
    }
    let first = text.charCodeAt(start);
    while (first <= SPACE) {
      start += 1;
      first = text.charCodeAt(start);
    }
    let end: number;
    if (first === LETTER_N) end = start + 'null'.length;
    else if (first === QUOTE) end = hasEscapes ? endOfString(text, start) : text.indexOf('"', start + 1) + 1;
    else if (first === OPEN_BRACE || first === OPEN_BRACKET) end = endOfNested(text, start);
    else end = endOfScalar(text, start);
    const value = change?.value;
    if (change === undefined || (value?.length === end - start && text.startsWith(value, start))) {
      if (runStart < 0) runStart = at;
      runEnd = end;
    } else {
      isSame = false;
      if (runStart >= 0) parts.push(text.slice(runStart, runEnd));
      runStart = -1;
      if (value !== undefined && !change.found) parts.push(change.member.start + value);
    }
    if (change !== undefined) change.found = true;
    at = text.indexOf('"', end);
  }
  if (runStart >= 0) parts.push(text.slice(runStart, runEnd));
  for (let index = 0; index < changes.length; index += 1) {
    const change = changes[index];
    if (change?.value === undefined || change.found) continue;
    isSame = false;
    parts.push(change.member.start + change.value);
  }
  return isSame ? text : objectText(parts);
}

/** Returns a JSON string as `JSON.stringify` writes it. */
function withoutEscapes(literal: string): string {
  return literal.includes('\\') ? JSON.stringify(JSON.parse(literal)) : literal;
}

/** Returns the text of a member before its value, spaced as the other programs do. `literal`: the name as JSON text. */
export function memberStart(literal: string): string {
  return `${literal}: `;
}

/** Returns the object with these members as text. Adds its braces to the list: around the text, they would copy it. */
export function objectText(members: string[]): string {
  members[0] = `{${members[0] ?? ''}`;
  members.push(`${members.pop() ?? ''}}`);
  return members.join(', ');
}

/** Returns the index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  STRING.lastIndex = start;
  return STRING.test(text) ? STRING.lastIndex : text.length;
}

/** Returns the index after the object or list that begins at `start`. */
function endOfNested(text: string, start: number): number {
  let depth = 0;
  BRACKET.lastIndex = start;
  while (BRACKET.test(text)) {
    const code = text.charCodeAt(BRACKET.lastIndex - 1);
    depth += code === OPEN_BRACE || code === OPEN_BRACKET ? 1 : -1;
    if (depth === 0) return BRACKET.lastIndex;
  }
  return text.length;
}

/** Returns the index after the number, `true` or `false` that begins at `start`, a member of the object. */
function endOfScalar(text: string, start: number): number {
  const comma = text.indexOf(',', start);
  let end = comma === -1 ? text.lastIndexOf('}') : comma;
  while (text.charCodeAt(end - 1) <= SPACE) end -= 1;
  return end;
}
