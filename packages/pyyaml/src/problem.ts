import type { Span, YamlPath } from './document.js';

/** A fault of a text and its place. Quotes no values of the text, which may be secrets. */
export interface YamlProblem {
  readonly span: Span;
  /** Keys and indexes from the top; empty for the text as a whole. */
  readonly path: YamlPath;
  readonly expected: string;
  readonly found: string;
  /** The remedy. */
  readonly hint: string | undefined;
}
