/** The reference lists that are generated from a schema. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { schemaReference } from '../src/reference/schema.js';

const described = { type: 'string', description: 'It.' };

describe('the reference of a schema', () => {
  it('has a line per key with its type, its meaning, and its default or "required"', () => {
    const text = schemaReference({
      properties: {
        name: { type: 'string', description: 'Its name.' },
        size: { type: ['integer', 'null'], default: 3, description: 'Its size.' },
      },
      required: ['name'],
    });
    expect(text.split('\n')).toEqual([
      '- `name` string, required: Its name.',
      '- `size` integer: Its size. Default: `3`.',
    ]);
  });

  it('marks keys that the Python Nodepool does not have', () => {
    const text = schemaReference({ properties: { zones: { ...described, compatible: false } } });
    expect(text).toContain('- `zones` string (new): It.');
  });

  it('has a section per mapping and per list, named by its path', () => {
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
    expect(text).toContain('`port` integer:');
    expect(text).toContain('`release` string or number:');
  });

  it('escapes the markup in descriptions', () => {
    const text = schemaReference({ properties: { a: { type: 'string', description: '<x> | *y*' } } });
    expect(text).toContain(String.raw`\<x> | \*y\*`);
  });

  it('describes a mapping once if its key has the same description', () => {
    const inner = { type: 'object', properties: { key: described }, description: 'A thing.' };
    expect(schemaReference({ properties: { one: inner } }).split('A thing.')).toHaveLength(2);
  });

  it('shows the keys of a mapping below its own key, unless the mapping has a section', () => {
    const inner = {
      type: 'object',
      properties: { a: described, b: described },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
      description: 'A thing.',
    };
    const schema = { properties: { one: inner, two: inner, three: inner } };
    const text = schemaReference(schema, { sections: new Set(['two']), elsewhere: new Set(['three']) });
    expect(text.match(/^## .*/gm)).toEqual(['## `two`']);
    expect([...text.matchAll(/^( *- `\S+)`/gm)].map(([, key]) => key)).toEqual([
      '- `one',
      '  - `a',
      '  - `b',
      '- `two',
      '- `three',
      '- `a',
      '- `b',
    ]);
    expect(text).toContain('- `one` mapping: A thing. Exactly one of `a`, `b` is required.');
  });

  it('shows what differs from a schema that another page describes', () => {
    const list = (properties: JsonObject): JsonObject => ({
      type: 'array',
      items: { type: 'object', properties },
      description: 'All.',
    });
    const rules = { not: { required: ['c', 'd'] } };
    const base = {
      ...rules,
      properties: {
        a: { ...described, default: 'x' },
        b: described,
        c: described,
        d: described,
        same: list({ e: described }),
        other: list({ e: described, f: described }),
      },
    };
    const schema = {
      ...rules,
      required: ['b'],
      properties: {
        a: { ...described, default: 'y' },
        b: described,
        c: { ...described, compatible: false },
        own: described,
        same: list({ e: described }),
        other: list({ e: { ...described, description: 'That.' } }),
      },
    };
    expect(schemaReference(schema, { base }).split('\n')).toEqual([
      '- `own` string: It.',
      '',
      'Not available: `d`. Required: `b`. Other defaults: `a: y`. (new): `c`.',
      '',
      '## `other[]`',
      '',
      '- `e` string: That.',
      '',
      'Not available: `f`.',
    ]);
  });

  it('rejects a key without a description', () => {
    expect(() => schemaReference({ properties: { a: { type: 'string' } } })).toThrow(/a has no description/);
  });
});
