import { toJsonObjects, type RecordList } from '@nodepool/store';
import { sleep, type JsonValue } from '@nodepool/core';
import type { ListFormat, StoreContext } from '../command-context.js';
import { PLAIN, type TerminalSize } from '../display.js';
import { waitUntil } from '../wait.js';
import { formatList, jsonLine } from './format-list.js';
import { shorten } from './terminal-table.js';

/** Changes within this time (ms) are shown together. */
const COLLECT_MS = 100;
/** Interval (ms) at which a terminal shows new ages. */
const REFRESH_MS = 1000;

export interface ListSnapshot {
  readonly list: RecordList;
  readonly names: readonly string[];
}

export interface WatchedList {
  make(): ListSnapshot;
  subscribe(listener: () => void): () => void;
}

/**
 * Shows the list and every change of it until the user interrupts the command: on a terminal in place, else as one
 * block per change. JSON is one line per added, changed or removed row.
 */
export async function watchList(context: StoreContext, list: WatchedList, format: ListFormat): Promise<void> {
  const { out, store, interrupted, clock } = context;
  const redraws = out.redraw !== undefined && format !== 'json';
  const show = redraws ? inPlace(context, list, format) : byChange(context, list, format);
  let pending = true;
  let wake = (): void => undefined;
  const changed = (): void => {
    pending = true;
    wake();
  };
  const ends = [list.subscribe(changed), store.onComplete(changed), redraws ? undefined : noteDisconnection(context)];
  try {
    for (;;) {
      const refresh = redraws ? clock.schedule(REFRESH_MS, changed) : undefined;
      await waitUntil(
        () => (pending ? true : undefined),
        (check) => {
          wake = check;
          return () => (wake = (): void => undefined);
        },
        interrupted,
      ).finally(() => refresh?.cancel());
      pending = false;
      show();
      await sleep(clock, COLLECT_MS, interrupted);
    }
  } catch (error) {
    if (!interrupted.aborted) throw error;
  } finally {
    for (const end of ends) end?.();
    // The picture has no line break at its end.
    if (redraws) out.print('');
  }
}

/** Notes when the connection to ZooKeeper is lost, and when it is back. */
function noteDisconnection({ store, out }: StoreContext): () => void {
  return store.onComplete((complete) =>
    out.note(complete ? 'connected to ZooKeeper again' : 'not connected to ZooKeeper; the list may be outdated'),
  );
}

/** Redraws the terminal, as far as the lines fit. */
function inPlace({ out, store, clock }: StoreContext, list: WatchedList, format: ListFormat): () => void {
  return () => {
    const display = out.display?.() ?? PLAIN;
    const { list: rows, names } = list.make();
    const time = new Date(clock.now()).toISOString().slice(11, 19);
    const state = store.complete ? '' : ', NOT CONNECTED to ZooKeeper';
    const count = `${rows.rows.length} ${rows.rows.length === 1 ? 'row' : 'rows'}`;
    const lines = formatList(rows, format, display, names).split('\n');
    out.redraw?.(fitted([`${time} UTC, ${count}${state}; Ctrl-C ends`, ...lines], display.size).join('\n'));
  };
}

function fitted(lines: readonly string[], size: TerminalSize | undefined): readonly string[] {
  if (size === undefined || lines.length < size.rows) return lines;
  const shown = Math.max(1, size.rows - 2);
  const more = `… ${lines.length - shown} more lines; a filter such as --state shortens the list`;
  return [...lines.slice(0, shown), shorten(more, size.columns)];
}

/** Prints what has changed since the last call; ages alone are no change. */
function byChange({ out }: StoreContext, list: WatchedList, format: ListFormat): () => void {
  let before: ReadonlyMap<string, string> | undefined;
  return () => {
    const { list: rows, names } = list.make();
    const now = textsByName(rows, names);
    const changes = changesBetween(before ?? new Map<string, string>(), now);
    if (format === 'json') {
      const objects = new Map(toJsonObjects(rows).map((object, index) => [names[index] ?? '', object]));
      for (const { change, name } of changes) {
        const object = objects.get(name);
        out.print(jsonLine(object === undefined ? { change, name } : { change, name, object }));
      }
    } else if (before === undefined || changes.length > 0) {
      const text = formatList(rows, format, out.display?.() ?? PLAIN, names);
      out.print(before === undefined ? text : `${separator(format)}${text}`);
    }
    before = now;
  };
}

function separator(format: ListFormat): string {
  return format === 'yaml' ? '---\n' : '\n';
}

function textsByName({ columns, rows }: RecordList, names: readonly string[]): ReadonlyMap<string, string> {
  const isAge = columns.map(({ field }) => field === 'age');
  const textOf = (row: readonly JsonValue[]): string => JSON.stringify(row.filter((_, index) => isAge[index] !== true));
  return new Map(rows.map((row, index) => [names[index] ?? '', textOf(row)]));
}

interface RowChange {
  readonly change: 'added' | 'changed' | 'removed';
  readonly name: string;
}

function changesBetween(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly RowChange[] {
  const changes: RowChange[] = [];
  for (const [name, text] of after) {
    const known = before.get(name);
    if (known !== text) changes.push({ change: known === undefined ? 'added' : 'changed', name });
  }
  for (const name of before.keys()) if (!after.has(name)) changes.push({ change: 'removed', name });
  return changes;
}
