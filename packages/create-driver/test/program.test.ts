/** The program `npm create @nodepool/driver`: its output, questions and effects. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { run } from '../src/program.js';

interface Session {
  readonly code: number;
  readonly printed: string;
  readonly errors: string;
  readonly questions: readonly string[];
}

/** Runs the program. `answers` has the answers of a user at a terminal; without it, there is no terminal. */
async function program(args: readonly string[], answers?: readonly (string | undefined)[]): Promise<Session> {
  const said = { printed: '', errors: '', questions: [] as string[] };
  const left = [...(answers ?? [])];
  const code = await run(args, {
    print: (text) => void (said.printed += text),
    printError: (text) => void (said.errors += text),
    ask:
      answers === undefined
        ? undefined
        : async (question) => {
            said.questions.push(question);
            if (left.length === 0) throw new Error('one question too many');
            return left.shift();
          },
  });
  return { code, ...said };
}

describe('the program', () => {
  let parent: string;
  let folder: string;

  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), 'nodepool-create-driver-'));
    folder = join(parent, 'driver');
  });

  afterEach(() => {
    rmSync(parent, { recursive: true, force: true });
  });

  it('creates a driver, and prints the next steps', async () => {
    const { code, printed } = await program(['x', '--framework', 'simple', '--folder', folder]);

    expect(code).toBe(0);
    expect(printed).toContain(folder);
    expect(printed).toContain('npm test');
    expect(existsSync(join(folder, '.gitignore'))).toBe(true);
    expect(existsSync(join(folder, 'src', 'create-machine.ts'))).toBe(false);
  });

  it('uses the given package name', async () => {
    await program(['x', '--framework', 'simple', '--package', '@acme/x', '--folder', folder]);

    expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toMatchObject({ name: '@acme/x' });
  });

  it('asks for the framework on a terminal until the answer is valid', async () => {
    const { code, printed, questions } = await program(['x', '--folder', folder], ['fast', 'state-machine']);

    expect(code).toBe(0);
    expect(questions).toHaveLength(2);
    expect(printed).toContain('There is no framework "fast"');
    expect(existsSync(join(folder, 'src', 'create-machine.ts'))).toBe(true);
  });

  it('uses the recommended framework after an empty answer', async () => {
    const { printed } = await program(['x', '--folder', folder], ['']);

    expect(printed).toContain('framework simple');
  });

  it('creates nothing if the terminal was closed', async () => {
    const { code, errors } = await program(['x', '--folder', folder], [undefined]);

    expect(code).toBe(2);
    expect(errors).toContain('Give --framework');
    expect(existsSync(folder)).toBe(false);
  });

  it('requires the framework without a terminal', async () => {
    const { code, errors } = await program(['x', '--folder', folder]);

    expect(code).toBe(2);
    expect(errors).toContain('--framework simple or --framework state-machine');
    expect(existsSync(folder)).toBe(false);
  });

  it('does not change an existing folder', async () => {
    const { code, errors } = await program(['x', '--framework', 'simple', '--folder', parent]);

    expect(code).toBe(1);
    expect(errors).toContain('exists already');
    expect(existsSync(join(parent, 'package.json'))).toBe(false);
  });

  it('reports a parent folder that does not exist', async () => {
    const { code, errors } = await program(['x', '--framework', 'simple', '--folder', join(folder, 'deeper')]);

    expect(code).toBe(1);
    expect(errors).toContain('does not exist; create it first');
  });

  it('reports a parent that is a file', async () => {
    const file = join(parent, 'file');
    writeFileSync(file, '');

    const { code, errors } = await program(['x', '--framework', 'simple', '--folder', join(file, 'driver')]);

    expect(code).toBe(1);
    expect(errors).toContain('is not a folder');
  });

  it.each([
    [[], 'Give the NAME'],
    [['x', 'y'], 'unexpected: y'],
    [['x', 'simple'], 'With npm, write "--" before the options'],
    [['Big Name'], 'is not a valid driver name'],
    [['x', '--package', 'Big'], 'is not a valid package name'],
    [['x', '--framework', 'fast'], 'there are: simple, state-machine'],
    [['x', '--colour'], '--colour'],
  ])('rejects %j with the reason', async (args, why) => {
    const { code, errors } = await program(args);

    expect(code).toBe(2);
    expect(errors).toContain(why);
    expect(errors).toContain('--help');
  });

  it('prints its usage', async () => {
    const { code, printed } = await program(['--help']);

    expect(code).toBe(0);
    expect(printed).toMatch(/^Usage: npm create @nodepool\/driver NAME/);
  });

  it('prints its version', async () => {
    const { printed } = await program(['--version']);

    expect(printed).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
