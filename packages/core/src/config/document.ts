/** A parsed configuration file: its value, and where every part of it is written. */

import { isJsonObject, type JsonValue } from '../model/json.js';
import { isSecretPath, type KeyPath } from './problems.js';
import type { Position, SourceText } from './source.js';

/** Offsets into the source's text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Where an entry of a mapping or a list is; a list's entries have no key of their own. */
export interface EntryPlace {
  readonly key: Span;
  readonly value: Span;
}

/** Where the mappings and lists of a file are, by identity: what an alias refers to is where its anchor is. */
export class Places {
  private readonly containers = new WeakMap<
    object,
    { span: Span; entries: ReadonlyMap<string | number, EntryPlace> }
  >();

  add(container: object, span: Span, entries: ReadonlyMap<string | number, EntryPlace>): void {
    this.containers.set(container, { span, entries });
  }

  entriesOf(container: object): ReadonlyMap<string | number, EntryPlace> | undefined {
    return this.containers.get(container)?.entries;
  }

  spanOf(container: object): Span | undefined {
    return this.containers.get(container)?.span;
  }
}

export class ConfigDocument {
  constructor(
    readonly value: JsonValue,
    readonly source: SourceText,
    private readonly places: Places,
  ) {}

  /** Where the value at `path` is, or its key; of what does not exist, where the innermost existing part begins. */
  position(path: KeyPath, at: 'key' | 'value' = 'value'): Position {
    const { span, entry, depth } = this.find(path);
    if (entry === undefined || depth !== path.length) return this.source.position(span.start);
    return this.source.position(at === 'key' ? entry.key.start : entry.value.start);
  }

  /** The value at `path`; undefined when there is none. */
  valueAt(path: KeyPath): JsonValue | undefined {
    let value: JsonValue | undefined = this.value;
    for (const step of path) value = childOf(value, step);
    return value;
  }

  /** The text of a scalar as it is written, quotes included. */
  writtenAt(path: KeyPath): string | undefined {
    const { entry, depth } = this.find(path);
    return entry === undefined || depth !== path.length
      ? undefined
      : this.source.text.slice(entry.value.start, entry.value.end);
  }

  /** Whether the value at `path` must not be shown: by its name, its file, or because it came out of the environment. */
  isSecret(path: KeyPath): boolean {
    if (this.source.secret || isSecretPath(path)) return true;
    const { entry } = this.find(path);
    return entry !== undefined && this.source.isSubstituted(entry.value.start, entry.value.end);
  }

  private find(path: KeyPath): { span: Span; entry: EntryPlace | undefined; depth: number } {
    let value: JsonValue | undefined = this.value;
    let span = this.spanOf(value) ?? { start: 0, end: 0 };
    let entry: EntryPlace | undefined;
    let depth = 0;
    for (const step of path) {
      const next: EntryPlace | undefined =
        typeof value === 'object' && value !== null ? this.places.entriesOf(value)?.get(step) : undefined;
      if (next === undefined) break;
      value = childOf(value, step);
      entry = next;
      span = this.spanOf(value) ?? next.value;
      depth++;
    }
    return { span, entry, depth };
  }

  private spanOf(value: JsonValue | undefined): Span | undefined {
    return typeof value === 'object' && value !== null ? this.places.spanOf(value) : undefined;
  }
}

function childOf(value: JsonValue | undefined, step: string | number): JsonValue | undefined {
  if (typeof step === 'number') return Array.isArray(value) ? (value as readonly JsonValue[])[step] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}
