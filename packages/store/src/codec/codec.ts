/** Converts records to and from the JSON of their znodes. Unknown and unchanged fields are written back verbatim. */

import { memberStart, objectText, withMembers, type Member, type MemberChange } from './json.js';
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
  /** Parses a record. `changedAt` (unix seconds of the znode's last change) replaces an unreadable `state_time`. */
  decode(data: Uint8Array, identity: I, changedAt: number): Decoded<I & D>;
  /** Returns the JSON text of a new record. */
  create(value: D): string;
  /** Returns the record with these fields of `D` changed, or `source` itself if its text stays the same. */
  change(source: Source<I & D>, change: Partial<D>): Source<I & D>;
}

/** The parts of a codec that differ between kinds of records. */
export interface RecordShape<I extends object, D extends Stated> {
  /** All fields, in the order of a new record. */
  readonly fields: Readonly<Record<keyof D, true>>;
  /** Returns the record, or the reason why it cannot be read. Reads the fields of a record that it returned alike. */
  read(raw: JsonObject, identity: I, changedAt: number): (I & D) | string;
  /** Fields that are omitted while they are null. */
  readonly omitted?: readonly (keyof D)[];
  /** Printers of fields, by name. Default: `JSON.stringify`. */
  readonly print?: Readonly<Record<string, Printer>>;
  /** Fields that are also written under an old name, which old readers expect: the fields by old name. */
  readonly aliases?: Readonly<Record<string, keyof D & string>>;
}

/** Returns JSON text, or undefined to omit the field. */
type Printer = (value: unknown) => string | undefined;

/** A member of the JSON object of a record. */
interface FieldMember<F> extends Member {
  /** The field that it shows: its name, unless it is an alias. */
  readonly field: F;
  readonly print: Printer;
  readonly omitsNull: boolean;
  /** The text of the member if the field is null, as many are. */
  readonly nullText: string;
}

export function recordCodec<I extends object, D extends Stated>(shape: RecordShape<I, D>): Codec<I, D> {
  type Field = keyof D & string;
  const printers: Readonly<Record<string, Printer | undefined>> = shape.print ?? {};
  const memberOf = (name: string, field: Field, index: number): FieldMember<Field> => {
    const print = printers[field] ?? JSON.stringify;
    const literal = JSON.stringify(name);
    const start = memberStart(literal);
    const omitsNull = shape.omitted?.includes(field) === true;
    return { index, literal, start, field, print, omitsNull, nullText: `${start}null` };
  };
  const names = Object.keys(shape.fields) as Field[];
  const own = names.map((name, index) => memberOf(name, name, index));
  const aliases = Object.entries<Field>(shape.aliases ?? {}).map(([alias, field], index) =>
    memberOf(alias, field, names.length + index),
  );
  const ordered = [...own, ...aliases];
  const members = { ordered, byLiteral: new Map(ordered.map((member) => [member.literal, member])) };
  const byField = new Map<string, FieldMember<Field>>(own.map((member) => [member.field, member]));

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
      const texts: string[] = [];
      // An iterator would allocate an object per member.
      for (let index = 0; index < ordered.length; index += 1) {
        const member = ordered[index];
        if (member === undefined) continue;
        const content = value[member.field];
        if (content === null) {
          if (!member.omitsNull) texts.push(member.nullText);
          continue;
        }
        const printed = member.print(content);
        if (printed !== undefined) texts.push(member.start + printed);
      }
      return objectText(texts);
    },

    change(source, change) {
      const known: object = source.value;
      const fields: Record<string, unknown> = { ...known };
      const changes: MemberChange[] = [];
      for (const name in change) {
        const value: unknown = change[name];
        const member = byField.get(name);
        if (member === undefined) continue;
        // The object that was read is no change, and its source text has more detail.
        if (value === fields[name] && typeof value === 'object' && value !== null) continue;
        const printed = value === null && member.omitsNull ? undefined : member.print(value);
        changes.push({ member, value: printed, found: false });
        fields[name] = isPlain(value) ? value : printed === undefined ? undefined : JSON.parse(printed);
      }
      for (const member of aliases) {
        const content = fields[member.field];
        // A record that another program wrote may lack the old name of a field without a value.
        if ((content === undefined || content === null) && !(member.field in change)) continue;
        changes.push({ member, value: member.print(content), found: false });
      }
      const before = utf8.decode(source.data);
      const text = withMembers(before, members, changes);
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
  const found = parsed === null ? 'null' : Array.isArray(parsed) ? 'a list' : `a ${typeof parsed}`;
  return `it is JSON, but ${found}; expected a JSON object`;
}

/** Returns true for values that JSON surely preserves: not for lists, objects, and numbers such as -0. */
function isPlain(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && value !== 0;
  return value === null || typeof value === 'string' || typeof value === 'boolean';
}
