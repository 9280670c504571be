/** `./install` of a checkout, as getting-started.md shows it, writes commands that run. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

const run = promisify(execFile);
const CHECKOUT = join(__dirname, '..', '..', '..');

it('the command of getting-started.md writes commands into a folder, which run from there', async () => {
  expect(readFileSync(join(CHECKOUT, 'docs', 'getting-started.md'), 'utf8')).toContain('./install ~/.local/bin\n');
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-install-'));
  try {
    const { stdout } = await run(join(CHECKOUT, 'install'), [join(folder, 'bin')], { cwd: folder });
    expect(stdout).toContain(
      'installed nodepool, nodepool-gitlab, nodepool-garm, nodepool-slurm, nodepool-launcher, nodepool-builder, ',
    );
    const daemons = ['builder', 'garm', 'gateway', 'github', 'gitlab', 'launcher', 'slurm'].map(
      (name) => `nodepool-${name}`,
    );
    const programs = ['nodepool', ...daemons];
    expect(readdirSync(join(folder, 'bin')).sort()).toEqual(programs);
    for (const program of programs) {
      const version = await run(join(folder, 'bin', program), ['--version'], { cwd: folder });
      expect(version.stdout).toMatch(/\d+\.\d+\.\d+/);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
