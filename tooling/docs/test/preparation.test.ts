/** The scripts that prepare a machine know every Debian package they ask for. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const REPOSITORY = join(__dirname, '..', '..', '..');

/** Runs a command after `prepare.sh`, with the packages as its arguments. */
function prepared(
  command: string,
  packages: readonly string[],
): { status: number | null; stdout: string; stderr: string } {
  const script = `. tooling/setup/prepare.sh\n${command}`;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', ...packages], {
    cwd: REPOSITORY,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

it.each(['demo', 'test', '.ci/release', '.ci/openstack'])('%s asks for packages that are known', (script) => {
  const text = readFileSync(join(REPOSITORY, script), 'utf8').replaceAll('\\\n', ' ');
  const packages = [...text.matchAll(/^\s*prepare (.+)$/gm)].flatMap(([, names = '']) => names.trim().split(/\s+/));
  expect(packages).not.toEqual([]);
  expect(prepared('find_missing_packages "$@"', packages)).toEqual({ status: 0, stdout: '', stderr: '' });
});

it('ends a script that asks for an unknown package', () => {
  const { status, stdout, stderr } = prepared('require_packages "$@"\necho continued', ['no-such-package']);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toContain('no way to tell whether the package no-such-package is there');
});
