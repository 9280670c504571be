/**
 * Runs a requestor as a process, and reads its report: `requestor.py`, which speaks to ZooKeeper with the Python client as Zuul does,
 * or the program on the library, which has the same options.
 */

import { readFileSync } from 'node:fs';
import type { ZooKeeperAddress } from './example-config.js';
import { Program } from './process.js';
import { libraryRequestorPath, requestorPath } from './programs.js';

const PYTHON = '/usr/bin/python3';
/** The longest that the requestor waits for a request, seconds, unless `args` say otherwise. */
const REQUEST_TIMEOUT_S = 180;
/** Longer than the time-outs of the requestor: ends a requestor that hangs. */
const DEFAULT_DEADLINE_MS = 280_000;

export type RequestorKind = 'python' | 'library';

/** Its last line. */
export interface Summary {
  readonly requests: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
  readonly nodes: number;
  /** Seconds, of all of it. */
  readonly wall_s: number;
  /** Seconds until requests were fulfilled; missing where none was. */
  readonly latency_s?: { readonly median: number; readonly p95: number; readonly max: number };
}

/** One line of `--verbose`. */
export interface RequestReport {
  readonly outcome: string;
  readonly request: string;
  readonly nodes: readonly string[];
  readonly providers: readonly string[];
  readonly addresses: readonly (string | null)[];
}

export interface RequestorResult {
  /** Null when it was killed. */
  readonly exitCode: number | null;
  /** Missing when it died before it could report. */
  readonly summary: Summary | undefined;
  readonly reports: readonly RequestReport[];
}

/** A requestor that runs. */
export interface RunningRequestor {
  readonly program: Program;
  readonly result: Promise<RequestorResult>;
}

export interface RequestorRunOptions {
  /** Milliseconds after which the requestor is killed. */
  readonly deadlineMs?: number;
  /** Default `python`. */
  readonly kind?: RequestorKind;
}

/**
 * Starts a requestor; `args` as its `--help` says. Its standard output and errors go into `logFile`. It is killed, and its
 * result rejects, when it runs for longer than `deadlineMs`.
 */
export async function startRequestor(
  zooKeeper: ZooKeeperAddress,
  logFile: string,
  args: readonly string[],
  { deadlineMs = DEFAULT_DEADLINE_MS, kind = 'python' }: RequestorRunOptions = {},
): Promise<RunningRequestor> {
  const { tls } = zooKeeper;
  const tlsArgs = tls === undefined ? [] : ['--ca', tls.ca, '--cert', tls.cert, '--key', tls.key];
  const defaults = ['--timeout', String(REQUEST_TIMEOUT_S)];
  const program = await Program.start({
    name: 'requestor',
    command: kind === 'python' ? PYTHON : process.execPath,
    args: [
      kind === 'python' ? requestorPath() : libraryRequestorPath(),
      '--zookeeper',
      zooKeeper.servers,
      ...tlsArgs,
      ...defaults,
      '--verbose',
      ...args,
    ],
    logFile,
  });
  return { program, result: resultOf(program, deadlineMs) };
}

async function resultOf(program: Program, deadlineMs: number): Promise<RequestorResult> {
  const exit = await program.ends(deadlineMs);
  const lines = readFileSync(program.logFile, 'utf8')
    // Its threads print an object and the end of the line one after the other, so that two objects may share a line.
    .replaceAll('}{', '}\n{')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Summary | RequestReport);
  return {
    exitCode: exit.code,
    summary: lines.find((line): line is Summary => 'outcomes' in line),
    reports: lines.filter((line): line is RequestReport => 'outcome' in line),
  };
}
