import type { Span, YamlPath } from './document.js';

/** A reason why a text cannot be used as it is, at its place. Contains none of the text's values. */
export interface YamlProblem {
  readonly span: Span;
  /** Keys and indexes from the top; empty for the text as a whole. */
  readonly path: YamlPath;
  readonly expected: string;
  readonly found: string;
  /** The remedy. */
  readonly hint: string | undefined;
}
