/** Reads the fields of an object that came from a file, and collects what is wrong with them. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';

export interface Problem {
  /** Where: keys joined by dots; '' for the whole. */
  readonly path: string;
  readonly message: string;
}

/** Every method answers undefined for a field that is missing, null or wrong; the last adds to the problems. */
export class FieldReader {
  constructor(
    private readonly data: JsonObject,
    private readonly path: string,
    private readonly problems: Problem[],
  ) {}

  keys(): readonly string[] {
    return Object.keys(this.data);
  }

  has(key: string): boolean {
    return this.value(key) !== null;
  }

  /** Other keys are problems. */
  onlyKeys(known: readonly string[]): void {
    for (const key of this.unknownKeys(known))
      this.problem(key, `there is no such key; there are: ${known.join(', ')}`);
  }

  unknownKeys(known: readonly string[]): readonly string[] {
    return this.keys().filter((key) => !known.includes(key));
  }

  choice<T extends string>(key: string, choices: readonly T[]): T | undefined {
    const value = this.value(key);
    if (value === null) return undefined;
    // YAML 1.1 reads an unquoted `off` as false.
    const written = value === false ? 'off' : value;
    const found = choices.find((choice) => typeof written === 'string' && choice === written.toLowerCase());
    if (found === undefined) this.problem(key, `expected ${choices.join(', ')}, not ${shown(value)}`);
    return found;
  }

  text(key: string): string | undefined {
    const value = this.value(key);
    if (value === null) return undefined;
    if (typeof value === 'string' && value !== '') return value;
    this.problem(key, `expected a text, not ${shown(value)}`);
    return undefined;
  }

  requiredText(key: string): string | undefined {
    if (!this.has(key)) this.problem('', `${key} is missing`);
    return this.text(key);
  }

  /** A whole number above zero. */
  count(key: string): number | undefined {
    const value = this.value(key);
    if (value === null) return undefined;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
    this.problem(key, `expected a whole number above 0, not ${shown(value)}`);
    return undefined;
  }

  /** The value as it is; null when missing. */
  value(key: string): JsonValue {
    return Object.hasOwn(this.data, key) ? (this.data[key] ?? null) : null;
  }

  texts(key: string): readonly string[] | undefined {
    const value = this.value(key);
    if (value === null) return undefined;
    const texts = Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : [];
    if (Array.isArray(value) && texts.length === value.length) return texts;
    this.problem(key, `expected a list of names, not ${shown(value)}`);
    return undefined;
  }

  object(key: string): FieldReader | undefined {
    const value = this.value(key);
    if (value === null) return undefined;
    if (isJsonObject(value)) return new FieldReader(value, this.place(key), this.problems);
    this.problem(key, `expected a map, not ${shown(value)}`);
    return undefined;
  }

  objects(key: string): readonly FieldReader[] | undefined {
    const value = this.value(key);
    if (value === null) return undefined;
    if (!Array.isArray(value)) {
      this.problem(key, `expected a list, not ${shown(value)}`);
      return undefined;
    }
    return (value as readonly JsonValue[]).flatMap((entry, index) => {
      const place = `${this.place(key)}[${index}]`;
      if (isJsonObject(entry)) return new FieldReader(entry, place, this.problems);
      this.problems.push({ path: place, message: `expected a map, not ${shown(entry)}` });
      return [];
    });
  }

  /** Adds a problem with a field; '' for the object itself. */
  problem(key: string, message: string): void {
    this.problems.push({ path: this.place(key), message });
  }

  private place(key: string): string {
    if (key === '') return this.path;
    return this.path === '' ? key : `${this.path}.${key}`;
  }
}

function shown(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
