/** Programs in separate processes. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Program } from '@nodepool/harness';

const LONG_MS = 240_000;

describe('a program', () => {
  let folder: string;
  let logFile: string;
  const started: Program[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-harness-'));
    logFile = join(folder, 'program.log');
  });

  afterEach(async () => {
    await Promise.all(started.splice(0).map((program) => program.kill()));
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(script: string, env: Record<string, string> = {}): Promise<Program> {
    const program = await Program.start({
      name: 'the program',
      command: process.execPath,
      args: ['-e', script],
      logFile,
      env,
    });
    started.push(program);
    return program;
  }

  /** Resolves once the program has written the line. */
  async function says(program: Program, line: string): Promise<void> {
    await program.while(`says ${line}`, LONG_MS, async (signal) => {
      while (!program.logTail().includes(line)) {
        signal.throwIfAborted();
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
  }

  it('writes its output to the log, and reports its exit', async () => {
    const program = await start('console.log(process.env.GREETING); console.error("oh"); process.exit(3)', {
      GREETING: 'hello',
    });

    expect(await program.ends(LONG_MS)).toEqual({ code: 3, signal: null });
    expect(program.exit).toEqual({ code: 3, signal: null });
    expect(program.logTail()).toBe('hello\noh');
    expect(program.logTail(1)).toBe('oh');
  });

  it('receives SIGTERM before SIGKILL', async () => {
    const program = await start(
      'process.on("SIGTERM", () => process.exit(7)); setInterval(() => {}, 1000); console.log("up")',
    );
    await says(program, 'up');

    expect(await program.stop()).toEqual({ code: 7, signal: null });
    expect(await program.stop()).toEqual({ code: 7, signal: null });
  });

  it('is killed if it does not end after SIGTERM', async () => {
    const program = await start('process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("up")');
    await says(program, 'up');

    expect(await program.stop(0)).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('is killed at the time limit, and the error contains the end of its log', async () => {
    const program = await start('console.log("busy"); setInterval(() => {}, 1000)');
    await says(program, 'busy');

    await expect(program.ends(0)).rejects.toThrow(/the program did not end within 0 ms[^]*busy/);
    expect(program.exit).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('is terminated with its child processes if the wait for its end is interrupted', async () => {
    const program = await start(`
      const sleeper = require('node:child_process').spawn('sleep', ['1000']);
      console.log('child ' + sleeper.pid + '.');
      setInterval(() => {}, 1000);
    `);
    await says(program, 'child');
    const interrupted = new AbortController();
    const ending = program.ends(LONG_MS, interrupted.signal);

    interrupted.abort(new Error('interrupted'));

    await expect(ending).rejects.toThrow('interrupted');
    expect(program.exit).toEqual({ code: null, signal: 'SIGTERM' });
    await dies(/^child (\d+)\.$/m.exec(program.logTail())?.[1]);
  });

  it('has time to clean up if the wait for its end is interrupted', async () => {
    const program = await start(`
      let signals = 0;
      process.on('SIGTERM', () => {
        signals += 1;
        setTimeout(() => process.exit(signals), 50);
      });
      setInterval(() => {}, 1000);
      console.log('up');
    `);
    await says(program, 'up');
    const interrupted = new AbortController();
    const ending = program.ends(LONG_MS, interrupted.signal);

    interrupted.abort(new Error('interrupted'));

    await expect(ending).rejects.toThrow('interrupted');
    expect(program.exit).toEqual({ code: 1, signal: null });
  });

  it('is terminated if the wait for its end begins after the interruption', async () => {
    const program = await start('setInterval(() => {}, 1000)');

    await expect(program.ends(LONG_MS, AbortSignal.abort(new Error('interrupted')))).rejects.toThrow('interrupted');
    expect(program.exit).toEqual({ code: null, signal: 'SIGTERM' });
  });

  it('that ends during a wait fails the wait with the end of its log', async () => {
    const program = await start('console.log("out of paper"); process.exit(1)');
    const forever = (): Promise<never> => new Promise<never>(() => undefined);

    await expect(program.while('prints', LONG_MS, forever)).rejects.toThrow(
      /the program: prints: the process ended: exit status 1[^]*out of paper/,
    );
  });

  it('that exceeds the time limit of a wait fails the wait and aborts the work', async () => {
    const program = await start('setInterval(() => {}, 1000)');
    let told: AbortSignal | undefined;
    const forever = (signal: AbortSignal): Promise<never> => {
      told = signal;
      return new Promise<never>(() => undefined);
    };

    await expect(program.while('prints', 0, forever)).rejects.toThrow(/prints: not within 0 ms/);
    expect(told?.aborted).toBe(true);
  });

  const withPdeathsig = existsSync('/usr/bin/setpriv') ? it : it.skip;
  withPdeathsig('ends if the process that started it is killed', async () => {
    const parent = await start(`
      const { Program } = require(${JSON.stringify(join(__dirname, '..'))});
      Program.start({
        name: 'child',
        command: process.execPath,
        args: ['-e', 'setInterval(() => {}, 1000)'],
        logFile: ${JSON.stringify(join(folder, 'child.log'))},
      }).then((child) => {
        console.log('child ' + child.pid + '.');
        process.kill(process.pid, 'SIGKILL');
      });
    `);
    expect(await parent.ends(LONG_MS)).toEqual({ code: null, signal: 'SIGKILL' });

    await dies(/^child (\d+)\.$/m.exec(parent.logTail())?.[1]);
  });
});

/** Resolves once the process has ended. */
async function dies(pid: string | undefined): Promise<void> {
  expect(pid).toBeDefined();
  const deadline = performance.now() + LONG_MS;
  while (isAlive(pid!) && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve));
  expect(isAlive(pid!)).toBe(false);
}

/** Returns true if the process is running, and not a zombie. */
function isAlive(pid: string): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
