/** Reads the fields of an object from a file that may contain anything. */

import { isJsonObject, type JsonObject, type JsonValue, type Resources } from '@nodepool/core';

/** A field that cannot be used; the message says what was expected. */
export class FieldError extends Error {}

/** Limits of times: a larger number is probably in milliseconds. */
const MAX_SECONDS = 1e11;
/** A year. */
const MAX_DURATION_SECONDS = 366 * 86_400;
const MAX_SHOWN = 60;

/** The fields of one object. Methods throw `FieldError`. */
export class Fields {
  private readonly read = new Set<string>();

  constructor(private readonly object: JsonObject) {}

  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  /** Returns the names of the fields that no method has read. */
  unread(): readonly string[] {
    return Object.keys(this.object).filter((key) => !this.read.has(key));
  }

  text(key: string, byDefault?: string): string {
    const value = this.value(key) ?? byDefault;
    if (isText(value)) return value;
    throw wrong(key, 'a text', value);
  }

  optionalText(key: string): string | null {
    return (this.value(key) ?? null) === null ? null : this.text(key);
  }

  texts(key: string): readonly string[] {
    const value = this.value(key);
    if (!Array.isArray(value)) throw wrong(key, 'a list of texts', value);
    return value.map((each: JsonValue) => {
      if (isText(each)) return each;
      throw wrong(key, 'a list of texts', value);
    });
  }

  /** Returns the objects of a list; an empty list if there is none. */
  objects(key: string): readonly Fields[] {
    const value = this.value(key) ?? [];
    if (!Array.isArray(value)) throw wrong(key, 'a list of objects', value);
    return value.map((each) => {
      if (isJsonObject(each)) return new Fields(each);
      throw wrong(key, 'a list of objects', value);
    });
  }

  number(key: string, least: number, most: number): number {
    const value = this.value(key);
    if (typeof value === 'number' && value >= least && value <= most) return value;
    throw wrong(key, most === Infinity ? 'a number' : `a number from ${least} to ${most}`, value);
  }

  wholeNumber(key: string, least: number, most: number): number | undefined {
    if (!this.has(key)) return undefined;
    const value = this.number(key, least, most);
    if (Number.isInteger(value)) return value;
    throw wrong(key, 'a whole number', value);
  }

  /** Returns a time, which is in unix seconds or ISO 8601, in milliseconds since the epoch. */
  time(key: string): number {
    const value = this.value(key);
    const ms = typeof value === 'string' ? Date.parse(value) : value;
    if (typeof value === 'number' && value >= 0 && value < MAX_SECONDS) return Math.round(value * 1000);
    if (typeof value === 'string' && typeof ms === 'number' && ms >= 0 && ms < MAX_SECONDS * 1000) return ms;
    throw wrong(key, 'unix seconds or a time such as 2030-01-31T12:00:00Z', value);
  }

  /** Returns seconds as milliseconds; undefined if there is no such field. */
  duration(key: string): number | undefined {
    return this.has(key) ? Math.round(this.number(key, 0, MAX_DURATION_SECONDS) * 1000) : undefined;
  }

  /** Returns `count` durations: one number stands for all of them. */
  durations(key: string, count: number): readonly number[] | undefined {
    const value = this.value(key);
    if (value === undefined || value === null) return undefined;
    const list = Array.isArray(value) ? value : Array.from({ length: count }, () => value);
    if (list.length !== count) throw new FieldError(`"${key}" has ${list.length} numbers for ${count} labels`);
    return list.map((each) => {
      if (typeof each === 'number' && each >= 0 && each <= MAX_DURATION_SECONDS) return Math.round(each * 1000);
      throw wrong(key, 'a number of seconds, or one for each label', value);
    });
  }

  /** Returns amounts by resource; undefined if there are none. */
  amounts(key: string): Resources | undefined {
    const value = this.value(key);
    if (value === undefined || value === null) return undefined;
    if (!isJsonObject(value)) throw wrong(key, 'amounts by resource', value);
    const amounts: Record<string, number> = {};
    for (const [resource, amount] of Object.entries(value)) {
      if (typeof amount !== 'number' || amount < 0) throw wrong(key, 'amounts by resource', value);
      amounts[resource] = amount;
    }
    return amounts;
  }

  private value(key: string): JsonValue | undefined {
    this.read.add(key);
    return Object.hasOwn(this.object, key) ? this.object[key] : undefined;
  }
}

/** Returns true for a text that can be printed: control characters would change the terminal. */
function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '' && !/\p{Cc}/u.test(value);
}

function wrong(key: string, expected: string, value: JsonValue | undefined): FieldError {
  if (value === undefined) return new FieldError(`"${key}" is missing; expected ${expected}`);
  const shown = JSON.stringify(value)
    .slice(0, MAX_SHOWN)
    .replaceAll(/\p{Cc}/gu, '\u{fffd}');
  return new FieldError(`"${key}" must be ${expected}, not ${shown}`);
}
