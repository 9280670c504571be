/** Runs `requestor.py`, which asks for nodes with the Python client as Zuul does, and reads what it reports. */

import { readFileSync } from 'node:fs';
import { Program, requestorPath, type ZooKeeperAddress } from '@nodepool/harness';

const PYTHON = '/usr/bin/python3';
/** The requestor has time-outs of its own; this one is for a requestor that hangs. */
const DEADLINE_MS = 150_000;

/** Its last line. */
export interface Summary {
  readonly requests: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
  readonly nodes: number;
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

/** Starts a requestor; `args` as its `--help` says. Its standard output and errors go into `logFile`. */
export async function startRequestor(
  zooKeeper: ZooKeeperAddress,
  logFile: string,
  args: readonly string[],
): Promise<RunningRequestor> {
  const { tls } = zooKeeper;
  const tlsArgs = tls === undefined ? [] : ['--ca', tls.ca, '--cert', tls.cert, '--key', tls.key];
  const program = await Program.start({
    name: 'requestor',
    command: PYTHON,
    args: [requestorPath(), '--zookeeper', zooKeeper.servers, ...tlsArgs, '--verbose', ...args],
    logFile,
  });
  return { program, result: resultOf(program) };
}

async function resultOf(program: Program): Promise<RequestorResult> {
  const exit = await program.ends(DEADLINE_MS);
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
