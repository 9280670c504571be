import { type CST, Lexer, Parser, type YAMLError } from 'yaml';
import { DocumentCheck } from './check.js';
import { compose } from './compose.js';
import { YamlDocument, type YamlValue } from './document.js';
import { NestingDepth } from './nesting.js';
import type { RepeatedKey, YamlProblem } from './problem.js';

export interface ParsedYaml {
  /** Undefined if the text has no usable value. A problem of one part leaves the document usable. */
  readonly document: YamlDocument | undefined;
  readonly problems: readonly YamlProblem[];
  /** Empty if `document` is undefined. */
  readonly repeatedKeys: readonly RepeatedKey[];
}

/** Number of tokens that are parsed between two pauses, about 20 ms of work. */
const PART = 2500;
/** Length of the text that is composed between two pauses, in characters. */
const PART_LENGTH = 100_000;

/**
 * Parses one YAML document. It never throws: the result contains a problem for every fault of the text, also for deep
 * nesting and for aliases that multiply. The last of repeated keys counts, as in PyYAML. Unlike PyYAML it
 * keeps every key as it is written.
 */
export function parseYaml(text: string): ParsedYaml {
  const parts = parseInParts(text, PART_LENGTH);
  let part = parts.next();
  while (part.done !== true) part = parts.next();
  return part.value;
}

/**
 * Parses as `parseYaml` does, and awaits `pause` after each part so that a large text does not block the process.
 * `partLength` is the length of the text that is composed in one part, in characters.
 */
export async function parseYamlInParts(
  text: string,
  pause: () => Promise<void>,
  partLength = PART_LENGTH,
): Promise<ParsedYaml> {
  const parts = parseInParts(text, partLength);
  let part = parts.next();
  while (part.done !== true) {
    await pause();
    part = parts.next();
  }
  return part.value;
}

/** Yields after each part. */
function* parseInParts(text: string, partLength: number): Generator<undefined, ParsedYaml> {
  const depth = new NestingDepth();
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let count = 0;
  for (const token of new Lexer().lex(text)) {
    if (!depth.accepts(token)) return refused(problemAt(depth.offset, 'fewer levels of nesting', 'too many'));
    tokens.push(...parser.next(token));
    count += 1;
    if (count % PART === 0) yield;
  }
  tokens.push(...parser.end());
  yield;
  const document = yield* compose(tokens, text, partLength);
  const [first] = document.errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
  if (first !== undefined) return refused(syntaxProblem(text, first));
  yield;
  const check = new DocumentCheck();
  check.visit(document.contents);
  if (check.fatal) return { document: undefined, problems: check.problems, repeatedKeys: [] };
  yield;
  const value = document.toJS({ maxAliasCount: -1 }) as YamlValue;
  const { problems, repeatedKeys } = check;
  return { document: new YamlDocument(value ?? null, document), problems, repeatedKeys };
}

function refused(problem: YamlProblem): ParsedYaml {
  return { document: undefined, problems: [problem], repeatedKeys: [] };
}

function problemAt(offset: number, expected: string, found: string, hint?: string): YamlProblem {
  return { span: { start: offset, end: offset }, path: [], expected, found, hint };
}

const INDENTATION_CODES = new Set<string>([
  'BAD_INDENT',
  'BLOCK_AS_IMPLICIT_KEY',
  'MULTILINE_IMPLICIT_KEY',
  'TAB_AS_INDENT',
]);

/** Reports the first error only: the ones that follow are nearly always its consequences. */
function syntaxProblem(text: string, { code, message, pos }: YAMLError): YamlProblem {
  const hint = INDENTATION_CODES.has(code) ? 'check the indentation of this line and of those before it' : undefined;
  // After a colon the library quotes the text, which may be a secret.
  const reason = message.replace(/: .*$/s, '');
  return problemAt(firstContent(text, pos[0]), 'valid YAML', `an error: ${reason}`, hint);
}

/** Returns the offset of the first content at or after `offset`. Errors at blanks or comments refer to it. */
function firstContent(text: string, offset: number): number {
  const blank = /(?:\s+|#[^\n]*\n)*/y;
  blank.lastIndex = offset;
  const atLineStart = /(^|\n)[ \t]*$/.test(text.slice(Math.max(0, offset - 200), offset));
  if (!atLineStart) return offset;
  const end = offset + (blank.exec(text)?.[0].length ?? 0);
  return end < text.length ? end : offset;
}
