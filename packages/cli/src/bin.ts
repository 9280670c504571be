#!/usr/bin/env node
/** The program `nodepool`. */

import { createInterface } from 'node:readline/promises';
import { ExitCode } from './command-context.js';
import { run } from './program.js';

/** What the commands are interrupted with. */
class InterruptedError extends Error {
  readonly code = 'interrupted';
  constructor(signal: string) {
    super(`interrupted by ${signal}`);
    this.name = 'InterruptedError';
  }
}

const interruption = new AbortController();

/** The first signal ends the command in good order, the second one at once. */
function onSignal(signal: string): void {
  if (interruption.signal.aborted) process.exit(ExitCode.refused);
  interruption.abort(new InterruptedError(signal));
}

process.on('SIGINT', onSignal);
process.on('SIGTERM', onSignal);
// `nodepool list | head`: the reader has seen enough.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) =>
    process.exit(error.code === 'EPIPE' ? ExitCode.done : ExitCode.refused),
  );
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await terminal.question(question, { signal });
  } finally {
    terminal.close();
  }
}

async function main(): Promise<void> {
  process.exitCode = await run(process.argv.slice(2), {
    out: {
      print: (text) => void process.stdout.write(`${text}\n`),
      note: (text) => void process.stderr.write(`${text}\n`),
    },
    env: process.env,
    ask: process.stdin.isTTY ? ask : undefined,
    interrupted: interruption.signal,
  });
}

void main();
