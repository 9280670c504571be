/** Supported Node.js versions of the packages in an installation. */

import { expect, it } from '@jest/globals';
import { checkEngines } from '../src/checks/engines.js';

const wanting = (node: string): Parameters<typeof checkEngines>[0] => [
  { name: 'x', version: '1.2.3', manifest: { engines: { node } } },
];

it.each(['>=18', '^20.17.0 || >=22.9.0', '*', '>= 0.8'])('the check of engines accepts %s', (range) => {
  expect(checkEngines(wanting(range))).toEqual([]);
});

it.each([
  ['>=22.13', '22.12.0'],
  ['^22.22.0 || ^24.12.0 || >=26', '22.12.0, 24.11.0'],
  ['22 || 24', '26.0.0'],
])('the check of engines reports %s because it excludes %s', (range, versions) => {
  expect(checkEngines(wanting(range)).map(({ message }) => message)).toEqual([
    `x@1.2.3 requires Node.js ${range}, which excludes ${versions}`,
  ]);
});

it('the check of engines accepts a package without engines', () => {
  expect(checkEngines([{ name: 'x', version: '1.2.3', manifest: {} }])).toEqual([]);
});
