/** The systemd units start on a machine that was set up according to the installation instructions. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const EXAMPLES = join(__dirname, '..', '..', '..', 'docs', 'examples');

const FILES: Readonly<Record<string, readonly string[]>> = {
  'nodepool-launcher': ['/etc/nodepool/nodepool.yaml'],
  'nodepool-builder': ['/etc/nodepool/nodepool.yaml'],
  'nodepool-gateway': ['/etc/nodepool/nodepool.yaml'],
  'nodepool-github': ['/etc/nodepool/nodepool.yaml', '/etc/nodepool/github.yaml'],
};

it.each(Object.keys(FILES))('%s requires no file except the configuration', (unit) => {
  const text = readFileSync(join(EXAMPLES, `${unit}.service`), 'utf8');
  const command = /^ExecStart=(.*)$/m.exec(text)?.[1] ?? '';
  expect(command.match(/\/etc\/\S+/g)).toEqual(FILES[unit]);
  expect(command).toMatch(new RegExp(`^/opt/nodepool/node_modules/.bin/${unit} .* \\$OPTIONS$`));
  const files = [...text.matchAll(/^EnvironmentFile=(.*)$/gm)].map(([, file]) => file);
  expect(files).toEqual([`-/etc/default/${unit}`]);
});

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

(hasSystemd ? it : it.skip).each(Object.keys(FILES))('systemd-analyze finds no fault in %s', (unit) => {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-units-'));
  try {
    // The programs and the account are not installed here, which systemd would report instead of faults.
    const text = readFileSync(join(EXAMPLES, `${unit}.service`), 'utf8')
      .replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true')
      .replace(/^(?:User|Group)=.*\n/gm, '');
    const file = join(folder, `${unit}.service`);
    writeFileSync(file, text);
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    expect({ status, about: stderr.split('\n').filter((line) => line.includes(unit)) }).toEqual({
      status: 0,
      about: [],
    });
    writeFileSync(file, text.replace('RestartSec', 'RestartSecs'));
    const wrong = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    expect(wrong.stderr).toContain('RestartSecs');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
