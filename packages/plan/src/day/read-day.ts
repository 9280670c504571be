/** Reads journals of launchers, or files of requests, line by line. */

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileFaultOf } from '@nodepool/core';
import { FieldError } from './fields.js';
import { assembleDay, type Day } from './day.js';
import { readLine, type DayLine } from './lines.js';

/** Limits of what is kept in memory. */
const MAX_LINES = 5_000_000;
const MAX_LINE_LENGTH = 1_000_000;
/** Limit of the replayed time, days. A single wrong time would make a replay endless. */
const MAX_DAYS = 31;
/** Number of wrong lines that are named. */
const MAX_NAMED = 20;

/** The file or the journal cannot be used; the message gives the reason or the wrong lines. */
export class DayError extends Error {}

/** A text in lines and its name for messages. */
export interface DaySource {
  readonly name: string;
  readonly lines: Iterable<string> | AsyncIterable<string>;
}

export interface ReadDayOptions {
  /** Only the last part of the day, milliseconds. Default: everything. */
  readonly sinceMs?: number | undefined;
}

/** Returns the lines of a file as a source. */
export function fileSource(file: string): DaySource {
  return { name: file, lines: linesOf(file) };
}

async function* linesOf(file: string): AsyncGenerator<string> {
  try {
    yield* createInterface({ input: createReadStream(file), crlfDelay: Infinity });
  } catch (error) {
    throw new DayError(`${file} cannot be read: ${fileFaultOf(error)}`, { cause: error });
  }
}

/** Reads all sources as one day. Rejects with `DayError` if a line is wrong or a file cannot be read. */
export async function readDay(sources: readonly DaySource[], { sinceMs }: ReadDayOptions = {}): Promise<Day> {
  const lines: DayLine[] = [];
  const unknownKeys = new Set<string>();
  const wrong: string[] = [];
  for (const { name, lines: texts } of sources) {
    let number = 0;
    for await (const text of texts) {
      number += 1;
      if (text.trim() === '') continue;
      if (lines.length >= MAX_LINES) throw new DayError(`${name} has more than ${MAX_LINES} lines`);
      try {
        if (text.length > MAX_LINE_LENGTH) throw new FieldError(`it is longer than ${MAX_LINE_LENGTH} characters`);
        lines.push(readLine(text, (key) => unknownKeys.add(key)));
      } catch (error) {
        if (!(error instanceof FieldError)) throw error;
        wrong.push(`${name}, line ${number}: ${error.message}`);
        if (wrong.length > MAX_NAMED) throw problems(wrong);
      }
    }
  }
  if (wrong.length > 0) throw problems(wrong);
  const day = assembleDay(lines, sinceMs);
  if (day.requests.length === 0) {
    throw new DayError(`${sources.map(({ name }) => name).join(', ')}: there are no requests to replay`);
  }
  const days = Math.ceil((day.toMs - day.fromMs) / 86_400_000);
  if (days > MAX_DAYS) {
    throw new DayError(`the requests are from ${days} days, but at most ${MAX_DAYS} can be replayed; set --since`);
  }
  const keys = [...unknownKeys].map((key) => JSON.stringify(key)).slice(0, MAX_NAMED);
  const note = `These keys are not known and were ignored: ${keys.join(', ')}.`;
  return keys.length === 0 ? day : { ...day, notes: [note, ...day.notes] };
}

function problems(wrong: readonly string[]): DayError {
  const more = wrong.length > MAX_NAMED ? ['and possibly more'] : [];
  return new DayError(['these lines are wrong:', ...wrong.slice(0, MAX_NAMED), ...more].join('\n  '));
}
