/** Reads public traces of jobs: the pods of an Alibaba cluster (CSV), and logs in the Standard Workload Format. */

import { readFileSync } from 'node:fs';
import { UsageError } from '@nodepool/harness';

/** A job that needs one node. */
export interface Job {
  /** Milliseconds since the epoch. */
  readonly submitted: number;
  readonly durationMs: number;
}

/** A Monday, for traces that contain no date. */
const ANONYMOUS_START = Date.UTC(2023, 0, 2);

/** Returns the jobs of a file in the order of their submission. `from`: days of the trace to skip. */
export function readTrace(file: string, fromDay: number): readonly Job[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  const jobs = lines[0]?.includes('creation_time') === true ? podList(lines) : workload(lines);
  if (jobs.length === 0) throw new UsageError(`${file}: no job was found`);
  const first = jobs.reduce((least, { submitted }) => Math.min(least, submitted), Infinity) + fromDay * 86_400_000;
  return jobs.filter(({ submitted }) => submitted >= first).sort((a, b) => a.submitted - b.submitted);
}

function podList([header = '', ...lines]: readonly string[]): Job[] {
  const names = header.trim().split(',');
  const [created, deleted] = [names.indexOf('creation_time'), names.indexOf('deletion_time')];
  return lines.flatMap((line) => {
    const cells = line.trim().split(',');
    const [from, to] = [Number(cells[created]), Number(cells[deleted])];
    // Pods from before the trace have no time of creation.
    if (cells.length < names.length || cells[created] === '' || !Number.isFinite(from)) return [];
    return [{ submitted: ANONYMOUS_START + from * 1000, durationMs: Math.max(0, to - from) * 1000 }];
  });
}

/** Fields of a line: number, submission, wait, run time, … */
function workload(lines: readonly string[]): Job[] {
  const start = lines
    .map((line) => /^;\s*UnixStartTime:\s*(\d+)/u.exec(line)?.[1])
    .find((found) => found !== undefined);
  const epoch = start === undefined ? ANONYMOUS_START : Number(start) * 1000;
  return lines.flatMap((line) => {
    if (line.startsWith(';') || line.trim() === '') return [];
    const [, submitted = Number.NaN, , runTime = 0] = line.trim().split(/\s+/u).map(Number);
    if (!Number.isFinite(submitted)) return [];
    return [{ submitted: epoch + submitted * 1000, durationMs: Math.max(0, runTime) * 1000 }];
  });
}
