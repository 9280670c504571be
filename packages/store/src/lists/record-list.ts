/** A list for users and programs, on the command line and the web: columns with header and JSON name, and rows. */

import type { JsonValue } from '@nodepool/core';

/** A column of rows of type `R`. */
export interface ListColumn<R> {
  /** Name in JSON and in `?fields=`. */
  readonly field: string;
  /** Header in a table. */
  readonly header: string;
  /** Shown in the long form of the list only. */
  readonly detail?: boolean;
  /** All texts that the values can have; absent if there is no such limit. */
  readonly values?: readonly string[];
  /** Returns the JSON value. Arrays stay arrays; it never contains credentials. */
  value(row: R): JsonValue;
  /** Returns the text of a value in the table, if it differs from the default. */
  text?(value: JsonValue): string;
  /** Returns the number to sort by, if the order of the values is not that of their texts; undefined sorts last. */
  order?(value: JsonValue): number | undefined;
}

/** The chosen columns: the short form, all, or those with these field names. */
export type ColumnChoice = 'short' | 'all' | readonly string[];

/** A list that is ready to print. */
export interface RecordList {
  readonly columns: readonly Pick<ListColumn<never>, 'field' | 'header' | 'detail' | 'values' | 'text' | 'order'>[];
  /** Values in the order of the columns. */
  readonly rows: readonly (readonly JsonValue[])[];
}

/** The list does not have the requested field. */
export class UnknownFieldError extends Error {
  readonly code = 'unknown-field';
  constructor(
    readonly field: string,
    known: readonly string[],
  ) {
    super(`there is no field ${JSON.stringify(field.slice(0, 60))} in this list; there are: ${known.join(', ')}`);
    this.name = 'UnknownFieldError';
  }
}

/** Returns the chosen columns in the list's order. Throws `UnknownFieldError`. */
function chooseColumns<R>(columns: readonly ListColumn<R>[], choice: ColumnChoice): readonly ListColumn<R>[] {
  if (choice === 'all') return columns;
  if (choice === 'short') return columns.filter((column) => column.detail !== true);
  const wanted = new Set(choice);
  const chosen = columns.filter((column) => wanted.delete(column.field));
  for (const field of wanted) {
    throw new UnknownFieldError(
      field,
      columns.map((column) => column.field),
    );
  }
  return chosen;
}

/** Creates a list with the chosen columns of the rows. */
export function createRecordList<R>(
  columns: readonly ListColumn<R>[],
  choice: ColumnChoice,
  rows: readonly R[],
): RecordList {
  const chosen = chooseColumns(columns, choice);
  return { columns: chosen, rows: rows.map((row) => chosen.map((column) => column.value(row))) };
}

/** Returns the list as an array of JSON objects. */
export function toJsonObjects(listing: RecordList): Record<string, JsonValue>[] {
  return listing.rows.map((row) =>
    Object.fromEntries(listing.columns.map((column, index) => [column.field, row[index] ?? null])),
  );
}
