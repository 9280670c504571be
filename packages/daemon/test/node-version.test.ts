/** The programs end with a message if Node.js is older than `engines` of the packages. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isEsModuleWarning, nodeProblem } from '@nodepool/daemon/process-setup';

it.each(['18.20.8', '20.20.2', '22.11.0'])('Node.js %s is refused, with the remedy', (version) => {
  expect(nodeProblem(version, '/usr/bin/node')).toBe(
    `Node.js 22.12 or newer is needed, and /usr/bin/node is ${version}; ` +
      'install a newer one, and put its folder first in PATH',
  );
});

it('accepts the oldest version in "engines", and newer ones', () => {
  const { engines } = JSON.parse(readFileSync(join(__dirname, '..', 'package.json'), 'utf8')) as {
    readonly engines: { readonly node: string };
  };
  expect(engines.node).toBe('>=22.12.0');
  for (const version of ['22.12.0', '22.22.0', '24.0.0']) expect(nodeProblem(version, 'node')).toBeUndefined();
});

it('only the warning about the load of a library is omitted', () => {
  const warning =
    'CommonJS module /a.js is loading ES Module /b.js using require().\nSupport for loading ES Module in …';
  expect(isEsModuleWarning([warning, 'ExperimentalWarning'])).toBe(true);
  expect(isEsModuleWarning(['SQLite is an experimental feature', 'ExperimentalWarning', undefined])).toBe(false);
  expect(isEsModuleWarning([new Error('loading ES Module')])).toBe(false);
});
