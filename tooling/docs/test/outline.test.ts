/** The nested lists of keys that are generated from a schema. */

import { expect, it } from '@jest/globals';
import { secureKeys } from '../src/reference/secure-keys.js';
import { schemaOutline } from '../src/reference/outline.js';

const text = { type: 'string', description: 'A <text>.' };

it('the list is nested as the file, with types, defaults and rules', () => {
  const outline = schemaOutline({
    properties: {
      name: text,
      size: { type: ['integer', 'null'], default: 3, compatible: false, description: 'Its size.' },
      parts: {
        type: 'array',
        items: { type: 'object', properties: { a: text, b: text }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
        description: 'Its parts.',
      },
    },
    required: ['name'],
  });
  expect(outline.split('\n')).toEqual([
    '- `name` string, required: A \\<text>.',
    '- `size` integer (new): Its size. Default: `3`.',
    '- `parts` list: Its parts. At least one of `a`, `b` is required.',
    '  - `a` string: A \\<text>.',
    '  - `b` string: A \\<text>.',
  ]);
});

it('the keys of a section follow under its heading, those that another page describes do not', () => {
  const schema = { properties: { one: { properties: { a: text }, description: 'It.' }, two: text } };
  const outline = schemaOutline(schema, ['one']);
  expect(outline.split('\n').filter((line) => line !== '')).toEqual([
    '- `one` anything: It.',
    '- `two` string: A \\<text>.',
    '### `one`',
    '- `a` string: A \\<text>.',
  ]);
  expect(schemaOutline(schema, [], ['one']).split('\n')).toEqual([
    '- `one` anything: It.',
    '- `two` string: A \\<text>.',
  ]);
  expect(() => schemaOutline(schema, ['two'])).toThrow('no keys below two');
});

it('a key without a description is refused', () => {
  expect(() => schemaOutline({ properties: { a: { type: 'string' } } })).toThrow('a has no description');
});

it('the keys of the secure file are the outermost ones that it shares with the other file', () => {
  expect(secureKeys().split('\n')).toEqual([
    '- `zookeeper-servers`',
    '- `zookeeper-tls`',
    '- `diskimages[].name`',
    '- `diskimages[].env-vars`',
  ]);
});
