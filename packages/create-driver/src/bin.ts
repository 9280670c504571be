#!/usr/bin/env node
/** The program `create-driver`, which `npm create @nodepool/driver` runs. */

import { createInterface } from 'node:readline/promises';
import { run } from './program.js';

async function ask(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const gone = new Promise<undefined>((resolve) => {
    lines.once('close', () => {
      resolve(undefined);
    });
  });
  try {
    return await Promise.race([lines.question(question), gone]);
  } finally {
    lines.close();
  }
}

async function main(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    // A reader such as `head` may close the pipe early.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
  process.exitCode = await run(process.argv.slice(2), {
    print: (text) => void process.stdout.write(text),
    printError: (text) => void process.stderr.write(text),
    ask: process.stdin.isTTY && process.stdout.isTTY ? ask : undefined,
  });
}

void main();
