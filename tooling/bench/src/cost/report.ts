/** Renders what functions cost as tables: the most expensive packages, files and functions. */

import { relative } from 'node:path';
import type { Entry } from './entries.js';

export interface ReportOptions {
  /** Root of the workspace. */
  readonly root: string;
  /** Number of node lives that the entries are the cost of. */
  readonly lives: number;
  /** Number of rows in the tables of files and of functions. */
  readonly rows: number;
  readonly unit: string;
  /** Divides the amounts. */
  readonly scale: number;
}

export function renderReport(entries: readonly Entry[], options: ReportOptions): string {
  const { root, lives, rows, unit, scale } = options;
  const places = entries.map((entry) => ({ ...entry, place: placeOf(entry.file, root) }));
  const table = (title: string, nameOf: (entry: (typeof places)[number]) => string, limit: number): string => {
    const sums = new Map<string, number>();
    for (const entry of places) {
      const name = nameOf(entry);
      sums.set(name, (sums.get(name) ?? 0) + entry.amount);
    }
    const sorted = [...sums].sort(([, a], [, b]) => b - a).slice(0, limit);
    const lines = sorted.map(([name, sum]) => `${(sum / scale / lives).toFixed(1).padStart(9)}  ${name}`);
    return [`${unit} per node life by ${title}`, ...lines].join('\n');
  };
  const total = entries.reduce((sum, { amount }) => sum + amount, 0) / scale / lives;
  return [
    `${total.toFixed(0)} ${unit} per node life`,
    table('package', ({ place }) => packageOf(place), Infinity),
    table('file', ({ place }) => place, rows),
    table(
      'function',
      ({ place, functionName, line }) =>
        `${functionName === '' ? '(anonymous)' : functionName} ${place}${line === undefined ? '' : `:${line}`}`,
      rows,
    ),
  ].join('\n\n');
}

/** Returns the path in the workspace, without `packages/` and `dist/`, or the name of a file of Node.js. */
function placeOf(file: string, root: string): string {
  if (file === '') return '(built-in)';
  if (!file.startsWith('/')) return file;
  return relative(root, file)
    .replace(/^packages\//u, '')
    .replace('/dist/', '/');
}

function packageOf(place: string): string {
  return place.startsWith('node:') ? 'Node.js' : (place.split('/')[0] ?? place);
}
