/** Reads the profiles that the probe writes. */

import { existsSync, readFileSync } from 'node:fs';
import type { HeapProfiler, Profiler } from 'node:inspector';
import { fileURLToPath } from 'node:url';

/** The cost of one function. */
export interface Entry {
  readonly functionName: string;
  /** File that defines the function, or a name of Node.js such as `node:buffer`; empty for built-in functions. */
  readonly file: string;
  /** Line of the function in its file, or undefined if the profile does not have it. */
  readonly line: number | undefined;
  /** Number of calls, or bytes allocated by the function itself. */
  readonly amount: number;
}

/** Returns the functions that were called. */
export function calledFunctions(coverage: readonly Profiler.ScriptCoverage[]): Entry[] {
  return coverage.flatMap(({ url, functions }) => {
    const file = fileOf(url);
    const lineOf = lineFinder(file);
    return functions.flatMap(({ functionName, ranges: [whole] }) => {
      if (whole === undefined || whole.count === 0) return [];
      return [{ functionName, file, line: lineOf(whole.startOffset), amount: whole.count }];
    });
  });
}

/** Returns the functions that allocated memory. A function that several others call has several entries. */
export function allocatingFunctions(profile: HeapProfiler.SamplingHeapProfile): Entry[] {
  const entries: Entry[] = [];
  const pending = [profile.head];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    const { functionName, url, lineNumber } = node.callFrame;
    if (node.selfSize > 0) {
      const line = lineNumber < 0 ? undefined : lineNumber + 1;
      entries.push({ functionName, file: fileOf(url), line, amount: node.selfSize });
    }
    pending.push(...node.children);
  }
  return entries;
}

function fileOf(url: string): string {
  return url.startsWith('file:') ? fileURLToPath(url) : url;
}

/** Returns a function that converts an offset in a file to a line number. */
function lineFinder(file: string): (offset: number) => number | undefined {
  if (!existsSync(file)) return () => undefined;
  const text = readFileSync(file, 'utf8');
  return (offset) => text.slice(0, offset).split('\n').length;
}
