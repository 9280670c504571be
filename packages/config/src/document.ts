import type { Span, YamlDocument } from '@nodepool/pyyaml';
import { isJsonObject, type JsonValue } from '@nodepool/core';
import { isSecretPath, type KeyPath } from './problems.js';
import type { Position, SourceText } from './source.js';

/** A parsed configuration file: its value, and the position of each part. */
export class ConfigDocument {
  readonly value: JsonValue;

  constructor(
    private readonly document: YamlDocument,
    readonly source: SourceText,
  ) {
    this.value = document.value;
  }

  /** Returns the position of the value at `path`, or of its key, or of the innermost existing part. */
  position(path: KeyPath, at: 'key' | 'value' = 'value'): Position {
    return this.source.position(this.document.locate(path).place[at].start);
  }

  /** Returns the value at `path`; undefined if there is none. */
  valueAt(path: KeyPath): JsonValue | undefined {
    let value: JsonValue | undefined = this.value;
    for (const step of path) value = childOf(value, step);
    return value;
  }

  /** Returns the text of a scalar as it is written, quotes included; for an alias, that of its value. */
  writtenAt(path: KeyPath): string | undefined {
    const span = this.spanOf(path);
    return span === undefined ? undefined : this.source.text.slice(span.start, span.end);
  }

  /** Returns true if the value at `path` must not be shown: due to its name, its file, or the environment. */
  isSecret(path: KeyPath): boolean {
    if (this.source.secret || isSecretPath(path)) return true;
    const { start, end } = this.document.locate(path).text;
    return this.source.isSubstituted(start, end);
  }

  private spanOf(path: KeyPath): Span | undefined {
    const { text, depth } = this.document.locate(path);
    return depth === path.length ? text : undefined;
  }
}

function childOf(value: JsonValue | undefined, step: string | number): JsonValue | undefined {
  if (typeof step === 'number') return Array.isArray(value) ? (value as readonly JsonValue[])[step] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}
