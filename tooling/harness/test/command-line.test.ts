/** Command lines of this workspace's programs. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { listOption, UsageError } from '@nodepool/harness';

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program whose `main` has this body. The body can use the package of `runCommandLine` as `harness`. */
async function run(main: string, command = '"$0" "$@"'): Promise<Ended> {
  const script = `
    const harness = require(${JSON.stringify(join(__dirname, '..'))});
    harness.runCommandLine('Usage: program\\n', async () => { ${main} });
  `;
  const child = spawn('/bin/sh', ['-c', command, process.execPath, '-e', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { status: child.exitCode, stdout, stderr };
}

describe('a program of this workspace', () => {
  it('keeps the exit status that it sets', async () => {
    expect(await run('console.log("result"); process.exitCode = 1')).toEqual({
      status: 1,
      stdout: 'result\n',
      stderr: '',
    });
  });

  it.each([
    ['an invalid value', 'throw new harness.UsageError("--runs is a number")', '--runs is a number'],
    [
      'an unknown option',
      'require("node:util").parseArgs({ args: ["--nonsense"], options: {} })',
      "Unknown option '--nonsense'",
    ],
  ])('exits with status 2 after the message and the help if it is called with %s', async (_, main, message) => {
    expect(await run(main)).toEqual({ status: 2, stdout: '', stderr: `${message}\n\nUsage: program\n` });
  });

  it('exits with status 1 after the stack trace of a failure', async () => {
    const { status, stderr } = await run('throw new TypeError("no such thing")');

    expect(status).toBe(1);
    expect(stderr).toMatch(/^TypeError: no such thing\n {4}at [^]*$/);
    expect(stderr).not.toContain('Usage');
  });

  it('exits silently if the reader of its output exits first', async () => {
    const lines =
      'for (let i = 0; i < 5; i += 1) { console.log("line"); await require("timers/promises").setTimeout(1) }';

    expect(await run(`${lines} process.exitCode = 3`, '{ "$0" "$@"; echo "status $?" >&2; } | true')).toEqual({
      status: 0,
      stdout: '',
      stderr: 'status 3\n',
    });
  });

  it('exits with status 130 if it is interrupted, even if work continues', async () => {
    const main = `
      setInterval(() => {}, 1000);
      const signal = harness.interruption();
      setImmediate(() => process.kill(process.pid, 'SIGINT'));
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    `;

    expect(await run(main)).toEqual({ status: 130, stdout: '', stderr: '\ninterrupted\n' });
  });
});

describe('an option that lists values', () => {
  it('has the values between its commas', () => {
    expect(listOption('--only', 'a,c', ['a', 'b', 'c'])).toEqual(['a', 'c']);
  });

  it.each(['b,zz', 'zz,b'])('names the unknown value and the known ones: %s', (value) => {
    const read = (): unknown => listOption('--only', value, ['a', 'b']);

    expect(read).toThrow(UsageError);
    expect(read).toThrow('--only: there is no "zz"; there are: a, b');
  });

  it('cannot be empty', () => {
    expect(() => listOption('--only', '', ['a'])).toThrow('--only: there is no ""; there are: a');
  });
});
