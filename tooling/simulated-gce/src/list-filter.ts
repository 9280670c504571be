/**
 * The `filter` of lists, e.g. `(labels.team = "ci") AND (status != RUNNING)`: comparisons of a field with a literal,
 * joined by AND. All other syntax (https://google.aip.dev/160) is refused, so that no filter is silently ignored.
 */

import { invalid } from './api-error.js';
import { asMessage, type Message } from './messages.js';

const COMPARISON = /^([\w.]+)\s*(=|!=|:|\seq\s|\sne\s)\s*(?:"([^"]*)"|'([^']*)'|([^\s"'()]+))$/;

export function matchesFilter(message: Message, filter: string | null): boolean {
  if (filter === null || filter.trim() === '') return true;
  return filter
    .split(/\sAND\s|\)\s*\(/)
    .every((part) => matches(message, part.replace(/^[\s(]+|[\s)]+$/g, ''), filter));
}

function matches(message: Message, comparison: string, filter: string): boolean {
  const [, field = '', operator = '', double, single, bare] = COMPARISON.exec(comparison) ?? [];
  if (field === '') throw invalid(`Invalid value for field 'filter': '${filter}'. Invalid list filter expression.`);
  const wanted = double ?? single ?? bare ?? '';
  const found = field.split('.').reduce<unknown>((value, key) => asMessage(value)[key], message);
  if (operator === ':') return wanted === '*' ? found !== undefined : textOf(found).includes(wanted);
  // `eq` and `ne` take regular expressions, which must match the whole value.
  if (operator.trim() === 'eq') return new RegExp(`^(?:${wanted})$`).test(textOf(found));
  if (operator.trim() === 'ne') return !new RegExp(`^(?:${wanted})$`).test(textOf(found));
  return (textOf(found) === wanted) === (operator === '=');
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
