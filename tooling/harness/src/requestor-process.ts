/**
 * Runs a requestor as a process and parses its report: `requestor.py`, which uses the Python ZooKeeper client like
 * Zuul, or the program that uses the library. Both have the same options.
 */

import { readFileSync } from 'node:fs';
import type { ZooKeeperAddress } from './example-config.js';
import { Program } from './process.js';
import { libraryRequestorPath, requestorPath } from './programs.js';

const PYTHON = '/usr/bin/python3';
/** Default time that the requestor waits for a request (seconds); `args` can override it. */
const REQUEST_TIMEOUT_S = 180;
/** Time after which a requestor is killed (ms): longer than its own timeouts. */
const DEFAULT_DEADLINE_MS = 280_000;

export type RequestorKind = 'python' | 'library';

/** The last line of its output. */
export interface Summary {
  readonly requests: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
  readonly nodes: number;
  /** Total seconds. */
  readonly wall_s: number;
  /** Seconds until requests were fulfilled; missing if none was. */
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
  /** Null if it was killed. */
  readonly exitCode: number | null;
  /** Missing if it died before reporting. */
  readonly summary: Summary | undefined;
  readonly reports: readonly RequestReport[];
}

/** A running requestor. */
export interface RunningRequestor {
  readonly program: Program;
  readonly result: Promise<RequestorResult>;
}

export interface RequestorRunOptions {
  /** Milliseconds after which the requestor is killed. */
  readonly deadlineMs?: number;
  /** Default `library`; `python` if `NODEPOOL_REQUESTOR` names another program with its options. */
  readonly kind?: RequestorKind;
}

/**
 * Starts a requestor with the arguments `args` (see its `--help`). Its output is written to `logFile`. If it runs
 * longer than `deadlineMs`, it is killed and its result rejects.
 */
export async function startRequestor(
  zooKeeper: ZooKeeperAddress,
  logFile: string,
  args: readonly string[],
  { deadlineMs = DEFAULT_DEADLINE_MS, kind = defaultKind() }: RequestorRunOptions = {},
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

function defaultKind(): RequestorKind {
  return process.env['NODEPOOL_REQUESTOR'] === undefined ? 'library' : 'python';
}

async function resultOf(program: Program, deadlineMs: number): Promise<RequestorResult> {
  const exit = await program.ends(deadlineMs);
  const lines = readFileSync(program.logFile, 'utf8')
    // Its threads print the object and the line end separately, so two objects may share a line.
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
