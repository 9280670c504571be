import type { Span, YamlPath } from './document.js';

/** A key that a mapping has more than once. As in PyYAML, the last one counts. */
export interface RepeatedKey {
  /** Keys and indexes from the top; the last is the repeated key. */
  readonly path: YamlPath;
  /** The places of the key whose values are ignored, in the order of the text. */
  readonly ignored: readonly Span[];
  /** The place of the key whose value counts. */
  readonly used: Span;
}

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
