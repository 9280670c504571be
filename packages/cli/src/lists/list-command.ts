/** The commands that list records: prints a list once, or again whenever it changes. */

import type { ListFormat, Output, StoreContext } from '../command-context.js';
import type { RecordList } from '@nodepool/store';
import { printList } from '../print-list.js';
import { chooseFields, parseFilter, select, type Filter } from './select.js';
import { namesOf } from './format-list.js';
import { watchList, type ListSnapshot } from './watch.js';

export interface ListOptions {
  readonly format: ListFormat;
  /** True for all columns. */
  readonly detail?: boolean;
  /** Names of columns, separated by commas; an empty text counts as absent. */
  readonly fields?: string;
  /** Conditions as in `parseFilter`. */
  readonly filter?: readonly string[];
  /** Fields to sort by, separated by commas. */
  readonly sort?: string;
  readonly watch?: boolean;
  /** Values of the filters with an option of their own, separated by commas. */
  readonly state?: string;
  readonly label?: string;
  readonly provider?: string;
  readonly image?: string;
}

/** The meaning of the options for one list. */
export interface ListTraits {
  /** Fields whose values, joined with `/`, are the name of a row. */
  readonly name: readonly string[];
  /** Fields of the options `--state`, `--label`, `--provider` and `--image`. */
  readonly filters: Readonly<Partial<Record<'state' | 'label' | 'provider' | 'image', string>>>;
  /** True if JSON and YAML have all columns only with `--detail`. */
  readonly shortData?: boolean;
}

export interface ListSource extends ListTraits {
  /** Returns the list with all columns; `now` is in milliseconds since the epoch. */
  make(now: number): RecordList;
  /** Calls `listener` after every change of the records. */
  subscribe(listener: () => void): () => void;
  /** Prints notes about the records, once. */
  note?(): void;
}

/** Prints the list. With `watch`, resolves when the user interrupts the command. Throws `UsageError`. */
export async function runList(context: StoreContext, source: ListSource, options: ListOptions): Promise<void> {
  const selection = selectionOf(source, options);
  if (options.watch === true) {
    const make = (): ListSnapshot => selection(source.make(context.clock.now()));
    await watchList(context, { make, subscribe: (listener) => source.subscribe(listener) }, options.format);
    return;
  }
  printSnapshot(context.out, selection(source.make(context.clock.now())), options.format);
  source.note?.();
}

/** Prints a list that has all columns. Throws `UsageError`. */
export function printSelected(out: Output, list: RecordList, traits: ListTraits, options: ListOptions): void {
  printSnapshot(out, selectionOf(traits, options)(list), options.format);
}

function printSnapshot(out: Output, { list, names }: ListSnapshot, format: ListFormat): void {
  printList(out, list, format, names);
}

/** Returns a function that applies the options to a list with all columns. */
function selectionOf(traits: ListTraits, options: ListOptions): (all: RecordList) => ListSnapshot {
  const filters = [...(options.filter ?? []).map(parseFilter), ...filtersOf(traits, options)];
  const [sort, named] = [namesIn(options.sort), namesIn(options.fields)];
  return (all) => {
    const selected = select(all, { filters, sort });
    const fields = named.length === 0 ? defaultFields(all, traits, options) : named;
    return { list: chooseFields(selected, fields), names: namesOf(selected, traits.name) };
  };
}

function defaultFields(
  { columns }: RecordList,
  { shortData = false }: ListTraits,
  { format, detail = false }: ListOptions,
): readonly string[] {
  const isData = format === 'json' || format === 'yaml';
  const isLong = detail || format === 'wide' || (isData && !shortData);
  return columns.filter((column) => isLong || column.detail !== true).map(({ field }) => field);
}

function filtersOf({ filters }: ListTraits, options: ListOptions): readonly Filter[] {
  return (['state', 'label', 'provider', 'image'] as const).flatMap((option) => {
    const [field, value] = [filters[option], options[option]];
    return field === undefined || value === undefined ? [] : [{ field, negated: false, patterns: value.split(',') }];
  });
}

function namesIn(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
