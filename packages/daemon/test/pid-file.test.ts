/** The file with the process id. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '@nodepool/core';
import { writePidFile } from '../src/process/pid-file.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-pid-'));
  file = join(folder, 'nodepool.pid');
});
afterEach(() => rmSync(folder, { recursive: true }));

const written = (): string => readFileSync(file, 'utf8');

it('contains the id of the process until its end, after an unclean end, too', () => {
  writeFileSync(file, '4194305\n');
  const end = writePidFile(file, silentLogger);
  expect(written()).toBe(`${process.pid}\n`);
  end();
  expect(existsSync(file)).toBe(false);
});

const [, own = ''] = process.argv;

it.each([
  ['contains the id of a running process of the same program after the end of another one', own, true],
  ['contains the id of a process that was started with a relative path', `../${basename(own)}`, true],
  ['contains the id of a process that was started with a link', 'link', true],
  ['is deleted if its former id is that of another program by now', '/usr/bin/other', false],
])('%s', async (_what, program, isKept) => {
  const cwd = join(folder, 'cwd');
  mkdirSync(cwd);
  for (const link of [join(folder, basename(own)), join(cwd, 'link')]) symlinkSync(own, link);
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', program], { cwd });
  await once(other, 'spawn');
  writeFileSync(file, `${other.pid}\n`);
  writePidFile(file, silentLogger)();
  other.kill();
  await once(other, 'exit');
  expect(existsSync(file) && written()).toBe(isKept && `${other.pid}\n`);
});

it('is left to a later program', () => {
  const end = writePidFile(file, silentLogger);
  writeFileSync(file, '4194305\n');
  end();
  expect(written()).toBe('4194305\n');
});

it('is named in the error if it is not writable', () => {
  const missing = join(folder, 'missing', 'nodepool.pid');
  expect(() => writePidFile(missing, silentLogger)).toThrow(
    `the file of --pidfile, ${missing}, cannot be written: its folder does not exist;`,
  );
});
