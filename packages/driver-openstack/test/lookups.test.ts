/** The selection of flavors. */

import { expect, it } from '@jest/globals';
import { chooseFlavor } from '../src/lookups.js';

const flavors = [
  { id: '1', name: 'v2-highcpu', vcpus: 8, ram: 8192 },
  { id: '2', name: 'v2-standard', vcpus: 4, ram: 8192 },
  { id: '3', name: 'V2-metal', vcpus: 16, ram: 16_384 },
  { id: '4', name: 'highmem', vcpus: 2, ram: 16_384 },
];

it.each([
  ['the first name of those with the least sufficient memory', { minRam: 8000, name: undefined }, '1'],
  ['the first name in the order of characters', { minRam: 10_000, name: undefined }, '3'],
  ['a part of the name', { minRam: 8000, name: 'stand' }, '2'],
  ['the whole name with min-ram: 0', { minRam: 0, name: 'highmem' }, '4'],
  ['the id', { minRam: undefined, name: '2' }, '2'],
])('a flavor is selected by %s', (_case, criteria, id) => {
  expect(chooseFlavor(flavors, criteria)?.id).toBe(id);
});

it('no part of a name selects a flavor with min-ram: 0', () => {
  expect(chooseFlavor(flavors, { minRam: 0, name: 'high' })).toBeUndefined();
});
