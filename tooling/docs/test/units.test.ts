/** The systemd units start on a machine that was set up according to the installation instructions. */

import { readFileSync } from 'node:fs';
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
