/** Converts records to and from the JSON of their znodes. Unknown and unchanged fields are written back verbatim. */

import { jsonText, memberText, objectText, withMembers, type MemberChange } from './json.js';
import { isJsonObject, type JsonObject } from '@nodepool/core';

/** A record and the data of its znode, JSON text in UTF-8. */
export interface Source<T> {
  readonly value: T;
  readonly data: Uint8Array;
}

/** A record, or the reason why it cannot be read. */
export type Decoded<T> =
  { readonly ok: true; readonly source: Source<T> } | { readonly ok: false; readonly reason: string };

/** The fields that all records have. */
export interface Stated {
  /** Unix seconds of the last change of `state`. */
  readonly state_time: number;
}

/** Reads and writes one kind of record. `I`: the identity, known from the path. `D`: the data of the znode. */
export interface Codec<I extends object, D extends Stated> {
  /**
   * Parses a record. `changedAt` (unix seconds of the znode's last change) replaces a `state_time` that cannot be read.
   */
  decode(data: Uint8Array, identity: I, changedAt: number): Decoded<I & D>;
  /** Returns the JSON text of a new record. */
  create(value: D): string;
  /**
   * Returns the record with these fields changed, or `source` itself if its text stays the same. Ignores fields that
   * are not part of `D`.
   */
  change(source: Source<I & D>, change: Partial<D>): Source<I & D>;
}

/** The parts of a codec that differ between kinds of records. */
export interface RecordShape<I extends object, D extends Stated> {
  /** All fields, in the order of a new record. */
  readonly fields: Readonly<Record<keyof D, true>>;
  /** Returns the record, or the reason why it cannot be read. Reads the fields of a record that it returned alike. */
  read(raw: JsonObject, identity: I, changedAt: number): (I & D) | string;
  /** Returns the JSON text of a field, or undefined to omit it. Default: `jsonText`. */
  readonly print?: (name: string, value: unknown) => string | undefined;
  /** Fields that are also written under an old name, which old readers expect: the fields by old name. */
  readonly aliases?: Readonly<Record<string, keyof D & string>>;
}

export function recordCodec<I extends object, D extends Stated>(shape: RecordShape<I, D>): Codec<I, D> {
  const fieldNames = Object.keys(shape.fields) as (keyof D & string)[];
  /** The names of the fields as JSON strings. */
  const literals = new Map<string, string>(fieldNames.map((name) => [name, JSON.stringify(name)]));
  const print = shape.print ?? ((_name, value) => jsonText(value));

  const aliases = Object.entries<keyof D & string>(shape.aliases ?? {}).map(([alias, name]) => ({
    alias,
    literal: JSON.stringify(alias),
    name,
  }));

  /** Changed records by their data, until `decode` receives that data after the write. */
  const changed = new WeakMap<Uint8Array, Source<I & D>>();

  return {
    decode(data, identity, changedAt) {
      const known = changed.get(data);
      if (known !== undefined) {
        changed.delete(data);
        return { ok: true, source: known };
      }
      const parsed = parseObject(data);
      if (typeof parsed === 'string') return { ok: false, reason: parsed };
      const value = shape.read(parsed, identity, changedAt);
      if (typeof value === 'string') return { ok: false, reason: value };
      const source = { value, data };
      return { ok: true, source };
    },

    create(value) {
      const members: string[] = [];
      const add = (name: string, literal: string, field: unknown): void => {
        const printed = field === undefined ? undefined : print(name, field);
        if (printed !== undefined) members.push(memberText(literal, printed));
      };
      for (const name of fieldNames) add(name, literals.get(name) ?? '', value[name]);
      for (const { alias, literal, name } of aliases) add(alias, literal, value[name]);
      return objectText(members);
    },

    change(source, change) {
      const known: object = source.value;
      const fields: Record<string, unknown> = { ...known };
      const changes: MemberChange[] = [];
      const wanted: Readonly<Record<string, unknown>> = change;
      for (const name of Object.keys(change)) {
        const value = wanted[name];
        const literal = literals.get(name);
        if (literal === undefined || isSameObject(value, fields[name])) continue;
        const printed = value === undefined ? undefined : print(name, value);
        changes.push({ literal, value: printed, found: false });
        fields[name] = printed === undefined ? undefined : isPlain(value) ? value : JSON.parse(printed);
      }
      for (const { alias, literal, name } of aliases) {
        const field = fields[name];
        if (field === undefined || field === null) continue;
        changes.push({ literal, value: print(alias, field), found: false });
      }
      const before = utf8.decode(source.data);
      const text = withMembers(before, changes);
      if (text === before) return source;
      const value = shape.read(isJsonObject(fields) ? fields : {}, source.value, source.value.state_time);
      if (typeof value === 'string') throw new TypeError(`the record cannot be changed so that ${value}`);
      const next = { value, data: bytesOf(text) };
      changed.set(next.data, next);
      return next;
    },
  };
}

const encoder = new TextEncoder();

/** Returns JSON text as the data of a znode. */
export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Returns the content of a znode that holds a JSON object, or the reason why it does not. */
export function parseObject(data: Uint8Array): JsonObject | string {
  if (data.length === 0) return 'it is empty; expected a JSON object';
  let text: string;
  try {
    text = utf8.decode(data);
  } catch {
    return 'it is not UTF-8 text; expected a JSON object';
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    // Only the position: the whole message quotes the data, which may hold credentials.
    const position = error instanceof Error ? /position \d+/.exec(error.message)?.[0] : undefined;
    return `it is not JSON (${position === undefined ? '' : `at ${position} of `}${text.length} characters)`;
  }
  if (isJsonObject(parsed)) return parsed;
  return `it is JSON, but ${Array.isArray(parsed) ? 'a list' : typeof parsed}; expected a JSON object`;
}

/** Returns true if an object is the one that was read. It is not a change then, and its source text has more detail. */
function isSameObject(value: unknown, before: unknown): boolean {
  return typeof value === 'object' && value !== null && value === before;
}

/** Returns true for values that JSON surely preserves: not for lists, objects, and numbers such as -0. */
function isPlain(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && value !== 0;
  return value === null || typeof value === 'string' || typeof value === 'boolean';
}
