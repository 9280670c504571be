/** The reference tables that are generated from a schema. */

import { describe, expect, it } from '@jest/globals';
import { schemaReference } from '../src/reference/schema.js';

const described = { type: 'string', description: 'It.' };

describe('the reference of a schema', () => {
  it('has a row per key with its type, its default or "required", and its meaning', () => {
    const text = schemaReference({
      properties: {
        name: { type: 'string', description: 'Its name.' },
        size: { type: ['integer', 'null'], default: 3, description: 'Its size.' },
      },
      required: ['name'],
    });
    expect(text.split('\n').slice(2)).toEqual([
      '| `name` | string       | required | Its name. |',
      '| `size` | whole number | `3`      | Its size. |',
    ]);
  });

  it('marks keys that the Python Nodepool does not have', () => {
    const text = schemaReference({ properties: { zones: { ...described, compatible: false } } });
    expect(text).toContain('(new) It.');
  });

  it('has a section per mapping and per list of mappings, named by its path', () => {
    const inner = { type: 'object', properties: { key: described }, description: 'A thing.' };
    const text = schemaReference({
      properties: { one: { ...inner }, many: { type: 'array', items: inner, description: 'All.' } },
    });
    expect(text.match(/^## .*/gm)).toEqual(['## `one`', '## `many[]`']);
  });

  it('states which keys exclude or require each other', () => {
    const text = schemaReference({
      properties: { a: described, b: described },
      allOf: [
        { oneOf: [{ required: ['a'] }, { required: ['b'] }] },
        { anyOf: [{ required: ['c'] }, { required: ['d'] }] },
        { not: { required: ['a', 'c'] } },
      ],
    });
    expect(text).toContain('Exactly one of `a`, `b` is required.');
    expect(text).toContain('At least one of `c`, `d` is required.');
    expect(text).toContain('`a` and `c` exclude each other.');
  });

  it('shows a number that may be written in quotes as a number, and a string as a string', () => {
    const text = schemaReference({
      properties: {
        port: { type: ['integer', 'string'], pattern: '^[0-9]+$', description: 'It.' },
        release: { type: ['string', 'number'], description: 'It.' },
      },
    });
    expect(text).toMatch(/`port` +\| whole number +\|/);
    expect(text).toMatch(/`release` +\| string or number +\|/);
  });

  it('escapes the markup in descriptions', () => {
    const text = schemaReference({ properties: { a: { type: 'string', description: '<x> | *y*' } } });
    expect(text).toContain(String.raw`\<x> \| \*y\*`);
  });

  it('rejects a key without a description', () => {
    expect(() => schemaReference({ properties: { a: { type: 'string' } } })).toThrow(/a has no description/);
  });
});
