#!/usr/bin/env node
/** The program `nodepool`. */

// First, because it checks the version of Node.js.
import '@nodepool/daemon/process-setup';
import { setMaxListeners } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { ExitCode } from './command-context.js';
import { run } from './program.js';

/** The reason with which interrupted commands are aborted. */
class InterruptedError extends Error {
  readonly code = 'interrupted';
  /** `signal` is passed to commands on nodes. */
  constructor(
    readonly signal: string,
    reason = `by ${signal}`,
  ) {
    super(`interrupted ${reason}`);
    this.name = 'InterruptedError';
  }
}

const interruption = new AbortController();
// `nodepool run` listens for each node.
setMaxListeners(0, interruption.signal);

/** Aborts the command at the first signal; exits at the second one. */
function onSignal(signal: string): void {
  if (interruption.signal.aborted) process.exit(ExitCode.refused);
  interruption.abort(new InterruptedError(signal));
}

process.on('SIGINT', onSignal);
process.on('SIGTERM', onSignal);
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') {
      // `nodepool list | head` reads only the first lines: a command that has done its work keeps its exit code.
      interruption.abort(new InterruptedError('SIGTERM', 'because its output was closed'));
      return;
    }
    if (stream === process.stdout) process.stderr.write(`nodepool: the output cannot be written: ${error.message}\n`);
    process.exit(ExitCode.refused);
  });
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await terminal.question(question, { signal });
  } finally {
    terminal.close();
  }
}

const { stdout } = process;

/** Clears line by line instead of the whole screen, which would flicker. */
const terminal = {
  size: () => ({ columns: stdout.columns, rows: stdout.rows }),
  redraw: (text: string) => void stdout.write(`\u001b[H${text.replaceAll('\n', '\u001b[K\n')}\u001b[K\u001b[J`),
};

async function main(): Promise<void> {
  process.exitCode = await run(process.argv.slice(2), {
    out: {
      print: (text) => void process.stdout.write(`${text}\n`),
      note: (text) => void process.stderr.write(`${text}\n`),
    },
    ...(stdout.isTTY ? { terminal } : {}),
    env: process.env,
    ask: process.stdin.isTTY ? ask : undefined,
    interrupted: interruption.signal,
  });
}

void main();
