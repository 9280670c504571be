/** The description of a node, a request, a label or a provider: facts, and lists of what belongs to it. */

import { printable, type JsonValue } from '@nodepool/core';
import { cellText, toJsonObjects, type RecordList } from '@nodepool/store';
import type { ListFormat, Output } from '../command-context.js';
import { paint, PLAIN, type Display } from '../display.js';
import { formatData, formatList } from '../lists/format-list.js';
import { foldRepeats } from '../lists/terminal-table.js';

export type DescribedKind = 'node' | 'request' | 'label' | 'provider';

export interface Description {
  readonly kind: DescribedKind;
  readonly name: string;
  /** One or more sentences. */
  readonly summary: string;
  readonly facts: readonly Fact[];
  readonly sections: readonly Section[];
}

export interface Fact {
  /** Name in JSON. */
  readonly field: string;
  readonly title: string;
  readonly value: JsonValue;
  /** Text for people, if it differs from the default. */
  readonly text?: string | undefined;
}

export interface Section {
  /** Name in JSON. */
  readonly field: string;
  readonly title: string;
  readonly list: RecordList;
}

/** Prints the description; by default, its tables are as wide as the terminal. */
export function printDescription(
  out: Output,
  description: Description,
  format: ListFormat,
  display: Display = out.display?.() ?? PLAIN,
): void {
  if (format === 'name') out.print(printable(description.name));
  else if (format === 'json' || format === 'yaml') out.print(formatData(dataOf(description), format));
  else out.print(textOf(description, display));
}

/** Returns the description as one object. */
export function dataOf({ kind, name, summary, facts, sections }: Description): Record<string, unknown> {
  return {
    kind,
    name,
    summary,
    ...Object.fromEntries(facts.map(({ field, value }) => [field, value])),
    ...Object.fromEntries(sections.map(({ field, list }) => [field, toJsonObjects(list)])),
  };
}

/** Returns the description for people; facts without a value and empty sections are omitted. */
export function textOf({ kind, name, summary, facts, sections }: Description, display: Display): string {
  const lines = [`${kind} ${printable(name)}`, `  ${printable(summary)}`];
  const known = facts
    .map((fact) => ({ ...fact, shown: printable(fact.text ?? defaultText(fact.value)) }))
    .filter(({ shown }) => shown !== '');
  if (known.length > 0) lines.push('');
  const width = Math.max(0, ...known.map(({ title }) => title.length));
  for (const { field, title, shown } of known) {
    const text = display.color && field === 'state' ? paint(shown, shown) : shown;
    lines.push(`${`${title}:`.padEnd(width + 2)}${text}`);
  }
  for (const { title, list } of sections) {
    if (list.rows.length === 0) continue;
    lines.push('', `${printable(title)}:`, ...indented(formatList(list, 'wide', narrowed(display))));
  }
  return lines.join('\n');
}

function defaultText(value: JsonValue): string {
  return Array.isArray(value) ? foldRepeats(value.map(cellText)) : cellText(value);
}

const INDENT = '  ';

function indented(text: string): readonly string[] {
  return text.split('\n').map((line) => `${INDENT}${line}`);
}

function narrowed({ size, color }: Display): Display {
  return { color, size: size === undefined ? undefined : { ...size, columns: size.columns - INDENT.length } };
}
